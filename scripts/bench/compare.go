package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"seckill/shared/servers"
)

// measurement is one or more lines of the table.
type measurement struct {
	name    string
	measure func(context.Context, *stage) ([]line, error)
}

// side is one side of a ratio.
type side struct {
	name string
	// before prepares a round, untimed; nil is nothing to prepare.
	before func(ctx context.Context, length time.Duration) error
	// round does the side's work for about that long, and returns how much
	// was done and how long it took.
	round func(ctx context.Context, length time.Duration) (done int64, took time.Duration, err error)
	// after tidies up, untimed.
	after func(ctx context.Context) error
	// parts are the processes that work for it, by name.
	parts map[string]*servers.Process
}

// ratio is a comparison to be made.
type ratio struct {
	quantity string
	unit     string
	a, b     side
	goal     float64 // of a divided by b; 0 is none
}

// compare measures both sides in turns: A B A B …, after a short turn of each
// that does not count.
func (s *stage) compare(ctx context.Context, r ratio) (line, error) {
	var a, b turns
	for round := range s.options.rounds + 1 {
		length := s.options.length
		if round == 0 {
			length = min(length, time.Second)
		}
		if err := a.add(ctx, r.a, length, round > 0); err != nil {
			return line{}, fmt.Errorf("%s: %w", r.a.name, err)
		}
		if err := b.add(ctx, r.b, length, round > 0); err != nil {
			return line{}, fmt.Errorf("%s: %w", r.b.name, err)
		}
	}
	work := median(b.costs) / median(a.costs)
	say("ratio %.2f; by processor time %.2f", median(a.rates)/median(b.rates), work)
	l := line{
		quantity: r.quantity,
		a:        fmt.Sprintf("%s: %s %s", r.a.name, amount(median(a.rates)), r.unit),
		b:        fmt.Sprintf("%s: %s %s", r.b.name, amount(median(b.rates)), r.unit),
	}
	got := median(a.rates) / median(b.rates)
	l.ratio = fmt.Sprintf("%.2f (%s); %.2f", got, spread(a.rates, b.rates), work)
	if got >= 10 {
		l.ratio = fmt.Sprintf("%.0f (%s); %.0f", got, spread(a.rates, b.rates), work)
	}
	if r.goal > 0 {
		l.goal, l.met = fmt.Sprintf("≥ %g", r.goal), yesNo(got >= r.goal)
	}
	return l, nil
}

// turns are the rounds of one side.
type turns struct {
	rates []float64 // done in a second
	costs []float64 // µs of processor time for one
}

// add is one round of one side.
func (t *turns) add(ctx context.Context, d side, length time.Duration, counts bool) error {
	if d.before != nil {
		if err := d.before(ctx, length); err != nil {
			return err
		}
	}
	m := startMeter(d.parts)
	done, took, err := d.round(ctx, length)
	if err != nil {
		return err
	}
	rate := float64(done) / took.Seconds()
	total, text := m.each(done)
	say("%-28s %10s /s   processor µs each: %s", d.name, amount(rate), text)
	if counts {
		t.rates, t.costs = append(t.rates, rate), append(t.costs, total)
	}
	if d.after != nil {
		return d.after(ctx)
	}
	return nil
}

// meter measures how long processes use processors.
type meter struct {
	parts  map[string]*servers.Process
	before map[string]time.Duration
}

// startMeter starts to measure these and this process.
func startMeter(parts map[string]*servers.Process) meter {
	m := meter{parts: parts, before: map[string]time.Duration{}}
	for name, p := range parts {
		m.before[name] = processTime(p.PID())
	}
	m.before[""] = processTime(os.Getpid())
	return m
}

// each is the processor time for each of so many operations since the start,
// in µs: all of it, and by part as text.
func (m meter) each(done int64) (total float64, text string) {
	var costs []string
	note := func(name string, spent time.Duration) {
		cost := float64(spent.Nanoseconds()) / 1000 / float64(max(done, 1))
		total += cost
		costs = append(costs, fmt.Sprintf("%s %.1f", name, cost))
	}
	for name, p := range m.parts {
		note(name, processTime(p.PID())-m.before[name])
	}
	slices.Sort(costs)
	note("bench", processTime(os.Getpid())-m.before[""])
	return total, strings.Join(costs, ", ") + fmt.Sprintf(", all %.1f", total)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	mid := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[mid-1] + sorted[mid]) / 2
	}
	return sorted[mid]
}

// spread is the least and the greatest ratio of a round.
func spread(a, b []float64) string {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	if slices.Max(ratios) >= 10 {
		return fmt.Sprintf("%.0f–%.0f", slices.Min(ratios), slices.Max(ratios))
	}
	return fmt.Sprintf("%.2f–%.2f", slices.Min(ratios), slices.Max(ratios))
}

// clockTick is the unit of the kernel's processor times.
const clockTick = 10 * time.Millisecond

// processTime is how long a process has used processors, 0 if it is gone.
func processTime(pid int) time.Duration {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	// The name, in parentheses, may hold anything.
	_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')'):]), " ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick
}
