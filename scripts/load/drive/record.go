package drive

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Kind is one of the ways in which an arrival may end, as an index into the
// names given to NewRecorder.
type Kind int

// Recorder counts outcomes and the time they took, in microseconds up to
// latencyMax, to two significant digits.
type Recorder struct {
	names  []string
	shards [8]shard

	mu     sync.Mutex // guards what is below
	totals []*hdrhistogram.Histogram
	spare  []*hdrhistogram.Histogram
	faults map[string]int64
}

// shard is a part of what was recorded since the last Cut, so that not all
// connections wait for one lock.
type shard struct {
	mu    sync.Mutex
	hists []*hdrhistogram.Histogram
	_     [64]byte
}

// latencyMax is recorded for whatever took longer.
const latencyMax = 10 * time.Minute

// faultsMax bounds the different texts of faults that are told apart.
const faultsMax = 16

// NewRecorder returns a Recorder of outcomes with these names.
func NewRecorder(names ...string) *Recorder {
	r := &Recorder{names: names, totals: histograms(len(names)), spare: histograms(len(names)), faults: map[string]int64{}}
	for i := range r.shards {
		r.shards[i].hists = histograms(len(names))
	}
	return r
}

func histograms(n int) []*hdrhistogram.Histogram {
	out := make([]*hdrhistogram.Histogram, n)
	for i := range out {
		out[i] = hdrhistogram.New(1, latencyMax.Microseconds(), 2)
	}
	return out
}

// Names returns the names of the kinds.
func (r *Recorder) Names() []string { return r.names }

// Record notes one outcome; shard may be any number, best one for each
// goroutine.
func (r *Recorder) Record(worker int, kind Kind, took time.Duration) {
	s := &r.shards[worker%len(r.shards)]
	value := min(max(took.Microseconds(), 1), latencyMax.Microseconds())
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.hists[kind].RecordValue(value) // it is within the bounds
}

// Fault notes why something went wrong.
func (r *Recorder) Fault(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.faults[text]; !known && len(r.faults) >= faultsMax {
		text = "other"
	}
	r.faults[text]++
}

// Faults returns how often each fault was noted.
func (r *Recorder) Faults() map[string]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]int64, len(r.faults))
	for text, n := range r.faults {
		out[text] = n
	}
	return out
}

// Cut returns what was recorded of each kind since the last Cut, and adds it
// to the totals. What it returns is good until the next Cut.
func (r *Recorder) Cut() []*hdrhistogram.Histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.spare {
		h.Reset()
	}
	for i := range r.shards {
		s := &r.shards[i]
		s.mu.Lock()
		for kind, h := range s.hists {
			if h.TotalCount() > 0 {
				r.spare[kind].Merge(h)
				h.Reset()
			}
		}
		s.mu.Unlock()
	}
	for kind, h := range r.spare {
		r.totals[kind].Merge(h)
	}
	return r.spare
}

// Total returns all of a kind up to the last Cut.
func (r *Recorder) Total(kind Kind) *hdrhistogram.Histogram {
	r.mu.Lock()
	defer r.mu.Unlock()
	return hdrhistogram.Import(r.totals[kind].Export())
}
