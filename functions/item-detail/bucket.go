package itemdetail

import (
	"sync"
	"time"
)

// bucket counts down how many unknown SKUs may still be looked up: it holds
// at most burst and refills by perSecond. Found items cost nothing, so only
// guessing empties it.
type bucket struct {
	burst     float64
	perSecond float64

	mu     sync.Mutex
	tokens float64
	filled time.Time
}

// empty reports whether nothing is left at now.
func (b *bucket) empty(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	return b.tokens < 1
}

// take removes one, also when that leaves less than nothing.
func (b *bucket) take(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill(now)
	b.tokens--
}

func (b *bucket) fill(now time.Time) {
	if b.filled.IsZero() {
		b.tokens = b.burst
	} else if passed := now.Sub(b.filled); passed > 0 {
		b.tokens = min(b.burst, b.tokens+passed.Seconds()*b.perSecond)
	}
	b.filled = now
}
