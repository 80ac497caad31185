// Command faults runs the whole system, lets buyers buy, breaks it in every way
// it knows, one after another, and says whether the laws held:
//
//	go run ./scripts/faults -minutes 30 -seed 1
//
// It needs redis-server and mariadbd. The seed decides the order of the faults,
// where they strike and what the buyers do; with it a campaign can be run
// again. It exits with 1 if a law was violated.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"seckill/scripts/faults/campaign"
	"seckill/scripts/faults/stage"
)

func main() {
	minutes := flag.Float64("minutes", 30, "how long faults are injected")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "what decides the faults and the buyers") //nolint:gosec // any number will do
	flag.Parse()
	slog.SetLogLoggerLevel(slog.LevelError) // that a store is away now and then is no news here
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	held, err := run(ctx, *minutes, *seed, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
	}
	if err != nil || !held {
		os.Exit(1)
	}
}

func run(ctx context.Context, minutes float64, seed uint64, out io.Writer) (held bool, err error) {
	programs, err := stage.Build(ctx, stage.Names())
	if err != nil {
		return false, err
	}
	began := time.Now()
	r, err := campaign.Run(ctx, campaign.Options{
		Seed: seed, Length: time.Duration(minutes * float64(time.Minute)), Programs: programs, Out: out,
	})
	if r != nil {
		print(out, r)
	}
	_, _ = fmt.Fprintf(out, "seed %d, %s; again: go run ./scripts/faults -minutes %v -seed %d\n", seed, time.Since(began).Round(time.Second), minutes, seed)
	return r != nil && len(r.Violations) == 0, err
}

// print says what a campaign came to.
func print(out io.Writer, r *campaign.Result) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }
	say("\nfaults injected:\n")
	total := 0
	for _, name := range slices.Sorted(maps.Keys(r.Faults)) {
		say("%6d  %s\n", r.Faults[name], name)
		total += r.Faults[name]
	}
	for _, missed := range r.Missed {
		say("missed: %s\n", missed)
	}
	for _, v := range r.Violations {
		say("VIOLATION %s\n", v)
	}
	var rest time.Duration
	for _, r := range r.Rests {
		rest = max(rest, r)
	}
	say("%d faults, %d rounds, %d answers, %d claims told, %d orders, %d of %d crash points struck, at rest after %s at most, %d violations\n",
		total, len(r.Rests), r.Answers, r.Claims, r.Orders, r.PointsHit, r.PointsSeen, rest.Round(100*time.Millisecond), len(r.Violations))
}
