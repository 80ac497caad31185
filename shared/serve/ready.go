package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// readyFor is how long a good result is believed.
	readyFor = 2 * time.Second
	// missingFor is how long a bad one is: Knative polls a starting function
	// every 50 ms, and each look saved is a later start.
	missingFor = 200 * time.Millisecond
	// pingMax bounds one look; it is less than the second that platforms wait.
	pingMax = 800 * time.Millisecond
)

// Check is something without which the function cannot work.
type Check struct {
	Name string
	// Ping returns nil if it works now, for writing too where that matters.
	Ping func(context.Context) error
}

// readiness looks at the checks when it is asked, one look at a time.
type readiness struct {
	checks []*check

	mu     sync.Mutex
	until  time.Time // when the last result is stale
	absent string    // the last result
}

type check struct {
	Check
	busy atomic.Bool // a ping that does not heed its deadline is still out
	down bool        // as last seen
}

func newReadiness(checks []Check) *readiness {
	r := &readiness{}
	for _, c := range checks {
		r.checks = append(r.checks, &check{Check: c})
	}
	return r
}

// missing names what does not work, empty if all does. It takes pingMax at
// most; who comes while another looks waits for that one's result.
func (r *readiness) missing(ctx context.Context) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.absent
	}
	// The result serves others too: it must not hang on who asked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingMax)
	defer cancel()
	r.absent = strings.Join(r.look(ctx), ", ")
	r.until = time.Now().Add(readyFor)
	if r.absent != "" {
		r.until = time.Now().Add(missingFor)
	}
	return r.absent
}

// look pings all at once and returns the names of those that do not work.
func (r *readiness) look(ctx context.Context) (names []string) {
	results := make([]chan error, len(r.checks))
	for i, c := range r.checks {
		results[i] = c.ping(ctx)
	}
	for i, c := range r.checks {
		var err error
		select {
		case err = <-results[i]:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if c.note(ctx, err) {
			names = append(names, c.Name)
		}
	}
	return names
}

// ping runs the check in the background, unless the last one is still out.
func (c *check) ping(ctx context.Context) chan error {
	result := make(chan error, 1)
	if !c.busy.CompareAndSwap(false, true) {
		result <- errors.New("the last ping has not returned")
		return result
	}
	go func() {
		err := c.try(ctx)
		c.busy.Store(false)
		result <- err
	}()
	return result
}

// try pings and takes a panic for an error.
func (c *check) try(ctx context.Context) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("ping panicked: %v", cause)
		}
	}()
	return c.Ping(ctx)
}

// note remembers what was seen, logs the change, and reports whether the check
// is down.
func (c *check) note(ctx context.Context, err error) (down bool) {
	down = err != nil
	switch {
	case down && !c.down:
		slog.WarnContext(ctx, "not ready", "check", c.Name, "error", err)
	case !down && c.down:
		slog.InfoContext(ctx, "ready again", "check", c.Name)
	}
	c.down = down
	return down
}
