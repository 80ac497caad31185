package drive

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Plan says who arrives when.
type Plan struct {
	// Open is the model: in an open one arrivals come when the plan says,
	// however slow the service is; in a closed one the next comes when a
	// connection has its answer.
	Open bool
	// Start is when the first may arrive; zero is now.
	Start time.Time
	// Rate is how many arrive in a second on average (as a Poisson process) in
	// an open model; 0 means all at Start.
	Rate float64
	// Count and For end the arrivals: after so many, or so long after Start.
	// Zero does not end them; one of them must.
	Count int64
	For   time.Duration
	// Conns is how many requests are under way at the same time, at most.
	Conns int
	// TriesMax is how often an arrival is tried that asks to come again.
	TriesMax int
}

// Outcome is what became of one try of an arrival.
type Outcome struct {
	Kind Kind
	// Again asks for another try after that time, if it is not zero; only the
	// last try of an arrival is recorded.
	Again time.Duration
}

// Work does what arrival n came for.
type Work func(s *Session, n int64) Outcome

// Run plays the plan and returns when every arrival was answered or given up;
// the latter is recorded as its last try's outcome. When ctx is done, those
// that wait are dropped.
func Run(ctx context.Context, p Plan, session func() *Session, rec *Recorder, work Work) {
	if p.Start.IsZero() {
		p.Start = time.Now()
	}
	line := &line{plan: p, next: p.Start}
	var all sync.WaitGroup
	for worker := range max(p.Conns, 1) {
		all.Go(func() {
			w := &walker{line: line, session: session(), rec: rec, shard: worker, work: work}
			w.walk(ctx)
		})
	}
	all.Wait()
}

// walker takes arrivals one after the other.
type walker struct {
	line    *line
	session *Session
	rec     *Recorder
	shard   int
	work    Work
	timer   *time.Timer
}

func (w *walker) walk(ctx context.Context) {
	w.timer = time.NewTimer(time.Hour)
	defer w.timer.Stop()
	for {
		a, ok := w.line.take(time.Now())
		if !ok || !w.until(ctx, a.due) {
			return
		}
		if !w.line.plan.Open && a.try == 0 {
			a.at = time.Now()
		}
		o := w.work(w.session, a.n)
		a.try++
		if o.Again > 0 && a.try < w.line.plan.TriesMax {
			w.line.again(a, time.Now().Add(o.Again))
			continue
		}
		w.rec.Record(w.shard, o.Kind, time.Since(a.at))
	}
}

// until waits for an instant; false means that ctx was done first.
func (w *walker) until(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	w.timer.Reset(wait)
	select {
	case <-w.timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// arrival is one that came, or comes again.
type arrival struct {
	n   int64
	at  time.Time // when it came first; its time counts from here
	due time.Time // when it is to be tried
	try int
}

// line hands out arrivals in the order of their time.
type line struct {
	plan Plan

	mu      sync.Mutex
	came    int64
	next    time.Time
	waiting comeback
}

// take returns the arrival that is due next, which may be in the future. In a
// closed model new ones are due at once, but none before the start.
func (l *line) take(now time.Time) (arrival, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.plan.Open && now.After(l.next) {
		l.next = now
	}
	ended := (l.plan.Count > 0 && l.came >= l.plan.Count) || (l.plan.For > 0 && l.next.Sub(l.plan.Start) >= l.plan.For)
	if len(l.waiting) > 0 && (ended || !l.waiting[0].due.After(l.next)) {
		return heap.Pop(&l.waiting).(arrival), true //nolint:forcetypeassert // it holds nothing else
	}
	if ended {
		return arrival{}, false
	}
	a := arrival{n: l.came, at: l.next, due: l.next}
	l.came++
	if l.plan.Open && l.plan.Rate > 0 {
		l.next = l.next.Add(time.Duration(rand.ExpFloat64() / l.plan.Rate * float64(time.Second)))
	}
	return a, true
}

func (l *line) again(a arrival, due time.Time) {
	a.due = due
	l.mu.Lock()
	defer l.mu.Unlock()
	heap.Push(&l.waiting, a)
}

// comeback is a heap of arrivals by their due time.
type comeback []arrival

func (c comeback) Len() int           { return len(c) }
func (c comeback) Less(i, j int) bool { return c[i].due.Before(c[j].due) }
func (c comeback) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *comeback) Push(x any)        { *c = append(*c, x.(arrival)) } //nolint:forcetypeassert // it holds nothing else
func (c *comeback) Pop() any {
	last := len(*c) - 1
	a := (*c)[last]
	*c = (*c)[:last]
	return a
}
