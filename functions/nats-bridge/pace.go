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
)

// pace says how many rounds may run at once and when the next may start: half
// as many after trouble and none for a while, one more after each success.
type pace struct {
	max int

	mu       sync.Mutex
	allowed  int
	running  int
	failures int           // in a row
	resumeAt time.Time     // no round starts before
	changed  chan struct{} // closed and replaced when a waiter should look again
}

func newPace(most int) *pace {
	return &pace{max: most, allowed: most, changed: make(chan struct{})}
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
	p.running++
	return 0, nil
}

func (p *pace) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
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
