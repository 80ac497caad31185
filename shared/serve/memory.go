package serve

import (
	"log/slog"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

const (
	// collectAt lets garbage grow to four times of what lives before it is
	// collected. A function keeps a few megabytes alive, so that Go's default
	// of once collects dozens of times a second under load.
	collectAt = 400
	// memoryShare of the container's memory is Go's limit: near it garbage is
	// collected as often as it takes. The rest is for what Go does not count.
	memoryShare = 0.8
)

// tuneMemory sets how often garbage is collected, unless GOGC or GOMEMLIMIT
// say so.
func tuneMemory() {
	if was := debug.SetGCPercent(collectAt); was != 100 {
		debug.SetGCPercent(was)
	}
	if _, err := memlimit.Set(memlimit.WithRatio(memoryShare)); err != nil {
		slog.Warn("the container's memory limit is not known", "error", err)
	}
}
