package main

import (
	"fmt"
	"time"

	"seckill/scripts/load/drive"
)

// scenario is one kind of day in the life of a sale.
type scenario struct {
	name string
	what string
	// once: each buyer arrives once, then it ends; else buyers arrive for a
	// time, again and again.
	once     bool
	defaults options
	// before runs ahead of the arrivals, when the sale is open.
	before func(*load) error
	work   func(*load) drive.Work
	// sellsOut: whoever is told "sold out" must have been told the truth to
	// the end, for no unit comes back.
	sellsOut bool
}

func scenarios() []scenario {
	return []scenario{
		{
			name: "rush", what: "everybody wants one at the opening", once: true, sellsOut: true,
			defaults: options{model: "open", buyers: 20_000, units: 2_000, payWindow: time.Hour},
			work:     (*load).claims,
		},
		{
			name: "soldout", what: "the storm after it sold out", sellsOut: true,
			defaults: options{model: "open", rate: 5_000, length: 10 * time.Second, buyers: 1_000_000, units: 100, payWindow: time.Hour},
			before:   (*load).sellOut, work: (*load).claims,
		},
		{
			name: "items", what: "readers of the item's page",
			defaults: options{model: "open", rate: 5_000, length: 10 * time.Second, buyers: 1, units: 100, payWindow: time.Hour},
			work:     (*load).items,
		},
		{
			name: "mixed", what: "a day: reads, claims, polls, cancels, payments",
			defaults: options{model: "open", rate: 1_000, length: 30 * time.Second, buyers: 1_000_000, units: 1_000, payWindow: 10 * time.Second},
			work:     (*load).day,
		},
		{
			name: "expiry", what: "unpaid orders expire in waves while claims go on",
			defaults: options{model: "open", rate: 500, length: 40 * time.Second, buyers: 1_000_000, units: 2_000, payWindow: 5 * time.Second},
			work:     (*load).claims,
		},
		{
			name: "hammer", what: "one buyer asks as fast as he can",
			defaults: options{model: "closed", length: 10 * time.Second, buyers: 1, units: 100, payWindow: time.Hour},
			work:     (*load).claims,
		},
	}
}

func scenarioHelp() []string {
	var lines []string
	for _, s := range scenarios() {
		lines = append(lines, s.name+": "+s.what)
	}
	return lines
}

func scenarioOf(name string) (scenario, error) {
	for _, s := range scenarios() {
		if s.name == name {
			return s, nil
		}
	}
	return scenario{}, fmt.Errorf("-scenario %q is none of:\n%v", name, scenarioHelp())
}
