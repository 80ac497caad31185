package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"seckill/scripts/load/drive"
)

// options are the command line.
type options struct {
	url       string
	scenario  string
	model     string
	rate      float64
	length    time.Duration
	buyers    int64
	units     int64
	limit     int64
	conns     int
	tries     int
	timeout   time.Duration
	sale      string
	sku       string
	opensIn   time.Duration
	payWindow time.Duration
	rest      time.Duration
	keys      bool
	report    string
}

// parse reads the command line; what it does not say the scenario does.
func parse(args []string) (options, error) {
	var o options
	set := flag.NewFlagSet("load", flag.ContinueOnError)
	set.StringVar(&o.url, "url", "http://127.0.0.1:8080", "the system's base `URL`")
	set.StringVar(&o.scenario, "scenario", "rush", strings.Join(scenarioHelp(), "\n"))
	set.StringVar(&o.model, "model", "", "open: buyers come when they come; closed: the next comes when one was answered")
	set.Float64Var(&o.rate, "rate", -1, "arrivals in a second, open model; 0 is all at once")
	set.DurationVar(&o.length, "for", 0, "how long buyers arrive")
	set.Int64Var(&o.buyers, "buyers", 0, "how many different buyers there are")
	set.Int64Var(&o.units, "units", 0, "units of a sale of its own")
	set.Int64Var(&o.limit, "limit", 1, "units one buyer may hold in a sale of its own")
	set.IntVar(&o.conns, "conns", 128, "connections: requests under way at the same time")
	set.IntVar(&o.tries, "tries", 8, "how often a buyer asks who got no definite answer")
	set.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long a buyer waits for an answer")
	set.StringVar(&o.sale, "sale", "", "an existing sale, instead of one of its own")
	set.StringVar(&o.sku, "sku", "", "the existing sale's item; default is the sale's name")
	set.DurationVar(&o.opensIn, "opens-in", 2*time.Second, "when a sale of its own opens")
	set.DurationVar(&o.payWindow, "pay-window", 0, "time to pay in a sale of its own")
	set.DurationVar(&o.rest, "rest", time.Minute, "how long the system may take to come to rest")
	set.BoolVar(&o.keys, "keys", false, "send an Idempotency-Key with each claim")
	set.StringVar(&o.report, "report", "", "write an HTML report to this `FILE`")
	if err := set.Parse(args); err != nil {
		return o, err
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	s, err := scenarioOf(o.scenario)
	if err != nil {
		return o, err
	}
	return o.completed(s), o.completed(s).validate()
}

// completed takes from the scenario what was not said.
func (o options) completed(s scenario) options {
	d := s.defaults
	if o.model == "" {
		o.model = d.model
	}
	if o.rate < 0 {
		o.rate = d.rate
	}
	setDefault(&o.buyers, d.buyers)
	setDefault(&o.units, d.units)
	setDefault(&o.length, d.length)
	setDefault(&o.payWindow, d.payWindow)
	if s.once { // each buyer comes once, and then it ends
		o.length = 0
	}
	if o.sku == "" {
		o.sku = o.sale
	}
	return o
}

func setDefault[T int64 | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// Bounds of the command line.
const (
	buyersMax = 100_000_000
	connsMax  = 20_000
	rateMax   = 1_000_000
)

func (o options) validate() error {
	switch {
	case !slices.Contains([]string{"open", "closed"}, o.model):
		return errors.New("-model must be open or closed")
	case o.rate < 0 || o.rate > rateMax:
		return fmt.Errorf("-rate must be 0 to %d", int(rateMax))
	case o.buyers < 1 || o.buyers > buyersMax:
		return fmt.Errorf("-buyers must be 1 to %d", buyersMax)
	case o.conns < 1 || o.conns > connsMax:
		return fmt.Errorf("-conns must be 1 to %d", connsMax)
	case o.tries < 1 || o.units < 1 || o.limit < 1:
		return errors.New("-tries, -units and -limit must be positive")
	case o.timeout <= 0 || o.rest <= 0 || o.opensIn < 0 || o.length < 0:
		return errors.New("-timeout, -rest, -opens-in and -for must not be negative")
	}
	return nil
}

// plan is what the options say about arrivals.
func (o options) plan(s scenario) drive.Plan {
	p := drive.Plan{Open: o.model == "open", Rate: o.rate, For: o.length, Conns: o.conns, TriesMax: o.tries}
	if s.once {
		p.Count = o.buyers
	}
	return p
}
