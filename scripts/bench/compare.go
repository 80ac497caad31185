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
	var a, b []float64
	for round := range s.options.rounds + 1 {
		length := s.options.length
		if round == 0 {
			length = min(length, time.Second)
		}
		x, err := s.turn(ctx, r.a, length)
		if err != nil {
			return line{}, fmt.Errorf("%s: %w", r.a.name, err)
		}
		y, err := s.turn(ctx, r.b, length)
		if err != nil {
			return line{}, fmt.Errorf("%s: %w", r.b.name, err)
		}
		if round > 0 {
			a, b = append(a, x), append(b, y)
		}
	}
	l := line{
		quantity: r.quantity,
		a:        fmt.Sprintf("%s: %s %s", r.a.name, amount(median(a)), r.unit),
		b:        fmt.Sprintf("%s: %s %s", r.b.name, amount(median(b)), r.unit),
	}
	got := median(a) / median(b)
	l.ratio = fmt.Sprintf("%.2f (%s)", got, spread(a, b))
	if got >= 10 {
		l.ratio = fmt.Sprintf("%.0f (%s)", got, spread(a, b))
	}
	if r.goal > 0 {
		l.goal, l.met = fmt.Sprintf("≥ %g", r.goal), yesNo(got >= r.goal)
	}
	return l, nil
}

// turn is one round of one side; it tells where the processor time went.
func (s *stage) turn(ctx context.Context, d side, length time.Duration) (float64, error) {
	before := make(map[string]time.Duration)
	for name, p := range d.parts {
		before[name] = processTime(p.PID())
	}
	own := processTime(os.Getpid())
	done, took, err := d.round(ctx, length)
	if err != nil {
		return 0, err
	}
	rate := float64(done) / took.Seconds()
	each := func(spent time.Duration) string {
		return fmt.Sprintf("%.1f", float64(spent.Nanoseconds())/1000/float64(max(done, 1)))
	}
	costs := []string{"bench " + each(processTime(os.Getpid())-own)}
	for name, p := range d.parts {
		costs = append(costs, name+" "+each(processTime(p.PID())-before[name]))
	}
	slices.Sort(costs)
	fmt.Fprintf(os.Stderr, "  %-28s %10s /s   processor µs each: %s\n", d.name, amount(rate), strings.Join(costs, ", "))
	if d.after != nil {
		err = d.after(ctx)
	}
	return rate, err
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
