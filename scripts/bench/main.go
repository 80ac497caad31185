// Command bench measures the ratios that the README states: both sides of each
// in one run, on this machine, in turns, several rounds, medians. It starts
// its own Redis, MariaDB and NATS and the functions' real programs, and prints
// a table in Markdown.
//
//	go run ./scripts/bench -rounds 5 -seconds 3 -only 'claims|refusals'
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	rounds       int
	length       time.Duration // of a round of one side
	conns        int
	only         *regexp.Regexp
	pipelineRate float64
	pipelineFor  time.Duration
	bigSale      int64
	due          int64
	growthMax    int64
	root         string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run is the benchmark, or one of the programs that it measures against.
func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		switch args[0] {
		case "bare":
			return serveBare(ctx, args[1:])
		case "variant":
			return serveVariant(ctx, args[1:])
		}
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	st, err := newStage(ctx, o)
	if err != nil {
		return err
	}
	t := table{facts: st.facts(ctx)}
	for _, m := range measurements() {
		if !o.only.MatchString(m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "\n%s\n", m.name)
		lines, err := m.measure(ctx, st)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "  failed:", err)
			lines = []line{{quantity: m.name, a: "failed: " + err.Error()}}
		}
		t.lines = append(t.lines, lines...)
	}
	fmt.Print(t.markdown())
	return nil
}

func parse(args []string) (options, error) {
	var o options
	seconds := 3.0
	only := ""
	var names []string
	for _, m := range measurements() {
		names = append(names, m.name)
	}
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.IntVar(&o.rounds, "rounds", 5, "how often each side is measured")
	set.Float64Var(&seconds, "seconds", seconds, "length of a round of one side")
	set.IntVar(&o.conns, "conns", 128, "connections of the load generator")
	set.StringVar(&only, "only", only, "measure what matches this `REGEXP` of:\n"+strings.Join(names, "\n"))
	set.Float64Var(&o.pipelineRate, "pipeline-rate", 12_000, "claims a second offered to the whole pipeline")
	set.DurationVar(&o.pipelineFor, "pipeline-for", 15*time.Second, "how long they are; 1m for the record")
	set.Int64Var(&o.bigSale, "big-sale", 100_000, "units of the sale whose last order is waited for")
	set.Int64Var(&o.due, "due", 100_000, "orders that fall due at once")
	set.Int64Var(&o.growthMax, "growth-max", 100_000, "units of the largest size that is grown to; 1000000 for the record")
	set.StringVar(&o.root, "root", ".", "the module's folder")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	var err error
	if o.only, err = regexp.Compile("(?i)" + only); err != nil {
		return o, fmt.Errorf("-only: %w", err)
	}
	o.length = time.Duration(seconds * float64(time.Second))
	if o.rounds < 1 || o.length < 100*time.Millisecond || o.conns < 1 || o.pipelineRate < 1 || o.bigSale < 1 || o.due < 1 || o.growthMax < 1 || o.pipelineFor < time.Second {
		return o, fmt.Errorf("-rounds, -seconds, -conns, -pipeline-rate, -pipeline-for, -big-sale, -due and -growth-max must be positive")
	}
	return o, nil
}
