package natsqueue

import (
	"testing"
	"time"
)

// A restarted broker does not meet all its clients in one instant, nor waits
// long for any of them, however often they have tried.
func TestReconnectsAreSpread(t *testing.T) {
	t.Parallel()
	for _, round := range []int{0, 1, 5, 60, 1_000_000} {
		seen := map[time.Duration]bool{}
		for range 100 {
			wait := reconnectDelay(round)
			if wait < reconnectWaitMin/2 || wait > reconnectWaitMax {
				t.Fatalf("round %d waits %s", round, wait)
			}
			seen[wait.Truncate(time.Millisecond)] = true
		}
		if len(seen) < 20 {
			t.Errorf("100 clients of round %d come back at %d different times", round, len(seen))
		}
	}
}
