package natsbridge

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// How long the bridge lets a target in trouble alone.
const (
	pauseMin = 100 * time.Millisecond
	pauseMax = 2 * time.Second
	// retryAfterMax bounds what a target may ask for.
	retryAfterMax = 30 * time.Second
	// slowAfter is when a round is not waited for any more: it is longer than a
	// fetch that finds nothing, and much longer than a usual post.
	slowAfter = 2 * time.Second
)

// pace says how many rounds may run at once and when the next may start: half
// as many after trouble and none for a while, one more after each success; and
// no more than there is work for.
type pace struct {
	max int

	mu       sync.Mutex
	allowed  int
	wanted   int
	running  int
	began    time.Time     // of the last round
	failures int           // in a row
	resumeAt time.Time     // no round starts before
	changed  chan struct{} // closed and replaced when a waiter should look again
}

// newPace allows most rounds at once, and begins with as many as are wanted.
func newPace(most, wanted int) *pace {
	return &pace{max: most, allowed: most, wanted: wanted, changed: make(chan struct{})}
}

// enter waits until a round may start; false when ctx has ended.
func (p *pace) enter(ctx context.Context) bool {
	for ctx.Err() == nil {
		wait, changed := p.tryEnter()
		if wait == 0 {
			return true
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-changed:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return false
}

// tryEnter starts a round, or returns how long to wait at most and what may
// end the wait before.
func (p *pace) tryEnter() (wait time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if wait := time.Until(p.resumeAt); wait > 0 {
		return wait, p.changed
	}
	if p.running >= p.allowed {
		return time.Hour, p.changed
	}
	if slow := time.Until(p.began.Add(slowAfter)); p.running >= p.wanted && slow > 0 {
		return slow, p.changed
	}
	p.running++
	p.began = time.Now()
	return 0, nil
}

func (p *pace) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.wake()
}

// found tells whether a round left more to do than it took. While it does, one
// round more is wanted; otherwise one alone: what comes while it runs waits for
// the next, so that posts are as large as they can be without anybody idling.
func (p *pace) found(more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !more {
		p.wanted = 1
		return
	}
	p.wanted = min(p.wanted+1, p.max)
	p.wake()
}

func (p *pace) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failures > 0 {
		slog.Info("events are delivered again", "failures", p.failures)
	}
	p.failures, p.resumeAt = 0, time.Time{}
	p.allowed = min(p.allowed+1, p.max)
	p.wake()
}

// troubled slows down, for retryAfter at least.
func (p *pace) troubled(retryAfter time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allowed = max(p.allowed/2, 1)
	pause := min(pauseMin<<min(p.failures, 10), pauseMax)
	p.failures++
	pause = max(pause/2+rand.N(pause/2), min(retryAfter, retryAfterMax))
	if until := time.Now().Add(pause); until.After(p.resumeAt) {
		p.resumeAt = until
	}
}

// wake has all waiters look again; the caller holds the lock.
func (p *pace) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}
