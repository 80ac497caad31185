package itemdetail

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	pauseMin = 100 * time.Millisecond
	pauseMax = time.Second
)

// gate remembers that a service fails, so that it is asked by one caller
// after a growing pause instead of by everybody at once: a service that comes
// back must not be met by a storm.
type gate struct {
	name string
	now  func() time.Time

	mu       sync.Mutex
	failures int
	retryAt  time.Time
}

// enter reports whether the service may be asked now. Whoever may must call
// leave. While the service fails, one caller per pause is let in.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failures == 0 {
		return true
	}
	now := g.now()
	if now.Before(g.retryAt) {
		return false
	}
	g.retryAt = now.Add(pauseMax)
	return true
}

// closed reports whether enter would refuse.
func (g *gate) closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failures > 0 && g.now().Before(g.retryAt)
}

// leave tells how asking went. It is logged when the service begins to fail
// and when it works again, not in between.
func (g *gate) leave(ctx context.Context, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		if g.failures > 0 {
			slog.InfoContext(ctx, "service works again", "service", g.name, "failures", g.failures)
		}
		g.failures = 0
		return
	}
	if g.failures == 0 {
		slog.WarnContext(ctx, "service fails", "service", g.name, "err", err)
	}
	g.failures++
	pause := min(pauseMin<<min(g.failures-1, 10), pauseMax)
	g.retryAt = g.now().Add(spread(pause))
}

// spread returns d shortened by up to 30 %, at random, so that replicas and
// keys do not act in step.
func spread(d time.Duration) time.Duration {
	return d - time.Duration(rand.Int64N(int64(d)*3/10+1)) //nolint:gosec // not a secret
}
