// Package natsbridge delivers events from a queue as CloudEvents over HTTP. It
// pulls what is there, posts it as one batch, several in flight, and answers
// the queue by what the target says of each event. It keeps nothing: killed at
// any point, the queue delivers again what was not answered.
package natsbridge

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Delivery is one message of the queue, to be answered once; natsqueue.Delivery
// is the same type and says more.
type Delivery = interface {
	ID() string
	Data() []byte
	Header() map[string][]string
	Delivered() int
	Ack() error
	Nak(delay time.Duration) error
	Park(ctx context.Context, reason string) error
	ParkPart(ctx context.Context, index int, id string, payload []byte, reason string) error
	InProgress() error
}

// Source is the queue; natsqueue.Subscription is one. Fetch returns at once
// what is there, else what comes first within wait.
type Source interface {
	Fetch(ctx context.Context, sizeMax int, wait time.Duration) ([]Delivery, error)
}

const (
	// idleWait bounds a fetch that finds nothing, and so how long the end of
	// an idle bridge takes.
	idleWait = time.Second
	// bodyMax bounds a post in bytes; a larger event goes alone.
	bodyMax = 1 << 20
	// unknownMax bounds a fetch when nothing is known of what waits: a message
	// may hold hundreds of events.
	unknownMax = 16
)

// Bridge moves events from its source to its target.
type Bridge struct {
	config Config
	source Source
	client *http.Client
	pace   *pace
	size   atomic.Int64 // messages that the next fetch asks for; at least 1
}

// New returns a bridge that does nothing until Run.
func New(config Config, source Source) *Bridge {
	b := &Bridge{config: config, source: source, client: newClient(config), pace: newPace(config.PostsInFlight, 1)}
	b.size.Store(int64(min(unknownMax, config.BatchMax)))
	return b
}

// Run moves events until ctx ends. Then it fetches no more, finishes what it
// has within Config.DrainTimeout, gives back the rest, and returns.
func (b *Bridge) Run(ctx context.Context) {
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	context.AfterFunc(ctx, func() { time.AfterFunc(b.config.DrainTimeout, stop) })
	var workers sync.WaitGroup
	for range b.config.PostsInFlight {
		workers.Go(func() {
			for b.pace.enter(ctx) {
				b.round(ctx, work)
				b.pace.leave()
			}
		})
	}
	workers.Wait()
}

// round moves one fetch. What it has fetched it delivers even if ctx has ended
// meanwhile: giving it back would only have it delivered once more.
func (b *Bridge) round(ctx, work context.Context) {
	size := int(b.size.Load())
	found, err := b.source.Fetch(ctx, size, idleWait)
	if err != nil {
		if ctx.Err() == nil {
			slog.Warn("events cannot be fetched", "error", err)
			b.pace.troubled(0)
		}
		return
	}
	b.pace.found(len(found) == size)
	if len(found) == 0 {
		return
	}
	defer b.keep(found)()
	for _, batch := range b.batches(work, found) {
		b.deliver(work, batch)
	}
}

// keep tells the queue that these are being worked on, until it is stopped.
func (b *Bridge) keep(found []Delivery) (stop func()) {
	done := make(chan struct{})
	tick := time.NewTicker(b.config.AckWait / 3)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				for _, d := range found {
					// It fails for those that are answered by now.
					_ = d.InProgress()
				}
			}
		}
	}()
	return func() { close(done) }
}

// batches cuts the events of what was fetched by number and size. What is no
// event is judged here: it would make the others' batch unreadable.
func (b *Bridge) batches(ctx context.Context, found []Delivery) [][]item {
	var all [][]item
	var batch []item
	size, events := 0, 0
	for _, d := range found {
		for _, it := range b.open(ctx, d) {
			events++
			size += len(it.payload) + 1
			if len(batch) > 0 && (size > bodyMax || len(batch) == b.config.BatchMax) {
				all = append(all, batch)
				batch, size = nil, len(it.payload)+1
			}
			batch = append(batch, it)
		}
	}
	b.size.Store(int64(b.nextSize(len(found), events)))
	if len(batch) > 0 {
		all = append(all, batch)
	}
	return all
}

// nextSize is as many messages as fill a post, going by the last ones, but not
// many more than those: the next ones may hold a hundred times as many events,
// which must neither fill the memory nor keep one worker busy with what the
// others could deliver.
func (b *Bridge) nextSize(found, events int) int {
	full := b.config.BatchMax * found / max(events, 1)
	return max(1, min(full, max(unknownMax, 2*found), b.config.BatchMax))
}
