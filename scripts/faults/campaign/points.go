package campaign

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"seckill/scripts/faults/proxy"
	"seckill/scripts/faults/stage"
)

// Point is a place of a function's flow at which it can be killed: before or
// after one step over the network. A Step that ends in * stands for the first
// that begins so.
type Point struct {
	Function string
	Step     string
	When     proxy.When
}

func (p Point) String() string { return fmt.Sprintf("%s %s %s", p.Function, p.When, p.Step) }

func (p Point) matches(function, step string, when proxy.When) bool {
	if p.Function != function || p.When != when {
		return false
	}
	if prefix, any := strings.CutSuffix(p.Step, "*"); any {
		return strings.HasPrefix(step, prefix)
	}
	return p.Step == step
}

// points sees every step, kills at an armed point, and counts.
type points struct {
	stage *stage.Stage

	mu       sync.Mutex
	seen     map[Point]int
	hits     map[Point]int
	misses   map[Point]int // how often it was waited for in vain
	armed    *Point
	cuts     int // how often to cut at the armed point instead of killing
	cut      int // how often that was done
	reached  chan struct{}
	restocks map[string]time.Time // when Redis had a claim's units back, by claim
}

func newPoints(s *stage.Stage) *points {
	p := &points{stage: s, seen: map[Point]int{}, hits: map[Point]int{}, misses: map[Point]int{}, restocks: map[string]time.Time{}}
	s.OnStep(p.step)
	return p
}

// step is a stage.Watch.
func (p *points) step(function string, when proxy.When, step proxy.Step, reply []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := Point{function, step.Name, when}
	p.seen[at]++
	if step.Name == "restock" && when == proxy.After {
		p.returned(step.Args, reply)
	}
	if p.armed == nil || !p.armed.matches(function, step.Name, when) {
		return true
	}
	if p.cuts > 0 {
		p.cut++
		if p.cuts--; p.cuts == 0 {
			p.disarm()
		}
		return false
	}
	p.hits[at]++
	p.disarm()
	// The process must be gone before the step goes on, and nothing else may
	// wait for that.
	p.mu.Unlock()
	p.stage.Functions[function].Crash(time.Duration(50+rand.IntN(250)) * time.Millisecond) //nolint:gosec // not a secret
	p.mu.Lock()
	return false
}

func (p *points) disarm() {
	p.armed, p.cuts = nil, 0
	close(p.reached)
}

// returned notes when units were back for sure: restock.lua has answered, and
// not that the sale is fenced.
func (p *points) returned(args []string, reply []byte) {
	if len(reply) == 0 || reply[0] != '*' || strings.Contains(string(reply), "fenced") {
		return
	}
	now := time.Now()
	for i := 0; i+2 < len(args); i += 3 {
		if _, ok := p.restocks[args[i]]; !ok {
			p.restocks[args[i]] = now
		}
	}
}

// returnedAt tells when a claim's units were back in Redis.
func (p *points) returnedAt(claim string) (time.Time, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.restocks[claim]
	return at, ok
}

// kill has the function of a point killed when it comes there; false if it did
// not within the time.
func (p *points) kill(ctx context.Context, at Point, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	hit := p.arm(ctx, at)
	if !hit {
		p.mu.Lock()
		p.misses[at]++
		p.mu.Unlock()
	}
	return hit
}

// sever ends the connection at a point, up to so many times, and returns how
// often it did: nobody may come there within the time, or not often enough
// soon after. Nobody is killed.
func (p *points) sever(ctx context.Context, at Point, times int, within time.Duration) int {
	p.mu.Lock()
	reached := make(chan struct{})
	p.armed, p.cuts, p.cut, p.reached = &at, times, 0, reached
	p.mu.Unlock()
	began, cut := time.Now(), 0
	for {
		select {
		case <-reached:
			return times
		default:
		}
		pause(ctx, severSoon/10)
		p.mu.Lock()
		if p.cut > cut {
			began, cut, within = time.Now(), p.cut, severSoon
		}
		if p.armed == &at && (time.Since(began) > within || ctx.Err() != nil) {
			p.armed, p.cuts = nil, 0
			p.mu.Unlock()
			return cut
		}
		p.mu.Unlock()
	}
}

// severSoon is how long another one is waited for.
const severSoon = time.Second

func (p *points) arm(ctx context.Context, at Point) bool {
	p.mu.Lock()
	reached := make(chan struct{})
	p.armed, p.cuts, p.reached = &at, 0, reached
	p.mu.Unlock()
	select {
	case <-reached:
	case <-ctx.Done():
		p.mu.Lock()
		if p.armed == &at {
			p.armed = nil
		}
		p.mu.Unlock()
		select {
		case <-reached: // in the last moment
		default:
			return false
		}
	}
	return true
}

// list returns the points that were seen, those that were hit least first, and
// of these the ones that are reached more easily.
func (p *points) list(rng *rand.Rand) []Point {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := make([]Point, 0, len(p.seen))
	for at := range p.seen {
		found = append(found, at)
	}
	slices.SortFunc(found, comparePoints) // so that the seed decides, not the map
	rng.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	slices.SortStableFunc(found, func(a, b Point) int {
		return cmp.Or(cmp.Compare(p.hits[a], p.hits[b]), cmp.Compare(p.misses[a], p.misses[b]))
	})
	return found
}

// rare returns a point that was waited for in vain so far: it is reached only
// while something else is wrong.
func (p *points) rare(rng *rand.Rand) (Point, bool) {
	list := slices.DeleteFunc(p.list(rng), func(at Point) bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.hits[at] > 0 || p.misses[at] == 0
	})
	if len(list) == 0 {
		return Point{}, false
	}
	return list[0], true
}

func comparePoints(a, b Point) int {
	return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Step, b.Step), cmp.Compare(b.When, a.When))
}

// table prints function × step × before, after: how often the function was
// killed there, of how often it came there.
func (p *points) table(w io.Writer) (hit, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows := map[[2]string]bool{}
	for at := range p.seen {
		rows[[2]string{at.Function, at.Step}] = true
		total++
		if p.hits[at] > 0 {
			hit++
		}
	}
	list := make([][2]string, 0, len(rows))
	for row := range rows {
		list = append(list, row)
	}
	slices.SortFunc(list, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(out, "function\tstep\tkilled before\tof\tkilled after\tof")
	for _, row := range list {
		before, after := Point{row[0], row[1], proxy.Before}, Point{row[0], row[1], proxy.After}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\t%d\n", row[0], row[1], p.hits[before], p.seen[before], p.hits[after], p.seen[after])
	}
	_ = out.Flush()
	return hit, total
}
