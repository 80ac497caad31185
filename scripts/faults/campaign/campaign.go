// Package campaign lets buyers buy from a running system while faults are
// injected into it, one after another, and then judges by the laws all that
// the stores hold and all that the buyers were told.
package campaign

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"seckill/scripts/faults/stage"
	"seckill/shared/seckill"
)

// Options say what a campaign does.
type Options struct {
	// Seed decides the order of the faults, where they strike, and what the
	// buyers do. The machine decides who is faster.
	Seed uint64
	// Length is how long faults are injected; the last round ends later. With
	// Rounds it is not looked at.
	Length time.Duration
	// Rounds are the faults to inject instead, by name, a list for each round.
	Rounds [][]string
	// Programs are the functions' paths by name.
	Programs map[string]string
	// Out is told of every fault and every checkpoint.
	Out io.Writer
}

// Result is what came of a campaign.
type Result struct {
	Violations []Violation
	// Faults counts those that were injected, by name; Missed those that
	// could not be: a point nobody came to.
	Faults map[string]int
	Missed []string
	// Answers, Claims and Orders count what the buyers got, Rests how long the
	// system took until it was at rest again after each round.
	Answers, Claims, Orders int
	Rests                   []time.Duration
	// PointsHit of PointsSeen crash points were struck.
	PointsHit, PointsSeen int
}

// campaign is one under way.
type campaign struct {
	options Options
	stage   *stage.Stage
	shop    *shop
	points  *points
	rng     *rand.Rand
	result  *Result
	offers  []*offer
	round   int
	// killed: something was killed in this round. healed is when the last
	// fault was over.
	killed bool
	healed time.Time
}

const (
	sweepEvery  = time.Second
	buyersASale = 20
	payWindow   = 3 * time.Second
	// faultsARound is how many faults a round of a long campaign has.
	faultsARound = 12
)

// Run runs a campaign. The error is the bench's own trouble.
func Run(ctx context.Context, o Options) (*Result, error) {
	s, err := stage.New(ctx, stage.Options{Programs: o.Programs, SweepEvery: sweepEvery})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := observe(ctx, s.DB); err != nil {
		return nil, err
	}
	c := &campaign{
		options: o, stage: s, shop: newShop(s), points: newPoints(s), result: &Result{Faults: map[string]int{}},
		rng: rand.New(rand.NewPCG(o.Seed, 0)), //nolint:gosec // repeatable on purpose
	}
	end := time.Now().Add(o.Length)
	deck := c.deck()
	for c.round = 1; ; c.round++ {
		names := deck.next(faultsARound)
		if o.Rounds != nil {
			if c.round > len(o.Rounds) {
				break
			}
			names = o.Rounds[c.round-1]
		} else if time.Now().After(end) || ctx.Err() != nil {
			break
		}
		if err := c.runRound(ctx, names); err != nil {
			return c.result, err
		}
		if len(c.result.Violations) > 0 {
			break // what follows would be judged by a system that is wrong already
		}
	}
	c.say("\n")
	c.result.PointsHit, c.result.PointsSeen = c.points.table(o.Out)
	return c.result, nil
}

func (c *campaign) say(format string, args ...any) {
	_, _ = fmt.Fprintf(c.options.Out, format, args...)
}

// deck deals the names of all faults, each once before any comes again.
type deck struct {
	rng   *rand.Rand
	names []string
	left  []string
}

func (c *campaign) deck() *deck {
	names := slices.Sorted(maps.Keys(kinds))
	return &deck{rng: c.rng, names: slices.DeleteFunc(names, func(name string) bool { return name == crashPoint })}
}

func (d *deck) next(n int) []string {
	dealt := make([]string, 0, n)
	for len(dealt) < n {
		if len(d.left) == 0 {
			d.left = slices.Clone(d.names)
			d.rng.Shuffle(len(d.left), func(i, j int) { d.left[i], d.left[j] = d.left[j], d.left[i] })
		}
		dealt, d.left = append(dealt, d.left[0]), d.left[1:]
		// A crash point between any two faults, so that each is reached.
		dealt = append(dealt, crashPoint)
	}
	return dealt
}

// runRound sells two sales while faults are injected, waits for rest and judges.
func (c *campaign) runRound(ctx context.Context, faults []string) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	c.say("round %d: sales %s and %s\n", c.round, c.offers[0].sale.ID, c.offers[1].sale.ID)
	c.killed, c.healed = false, time.Now()
	// Buyers end their last purchase within the time in which the system heals.
	asking, hangUp := context.WithCancel(ctx)
	defer hangUp()
	ending := make(chan struct{})
	crowd, err := c.crowd(asking, ending)
	if err != nil {
		close(ending)
		return err
	}
	c.settleIn(ctx)
	for _, name := range faults {
		if ctx.Err() != nil {
			break
		}
		c.inject(ctx, name)
	}
	close(ending)
	within := c.healing()
	began := time.Now()
	late := time.AfterFunc(within, hangUp)
	crowd.Wait()
	late.Stop()
	trouble := c.atRest(ctx, max(within-time.Since(began), 5*time.Second))
	c.result.Rests = append(c.result.Rests, time.Since(began))
	if trouble != nil && ctx.Err() == nil {
		c.violation(Violation{Law: "self-healing", Sale: "all", Detail: fmt.Sprintf("not at rest %s after the last fault: %v", within, trouble)})
	}
	return c.judge(ctx)
}

// settleIn lets the sale get going before the first fault.
func (c *campaign) settleIn(ctx context.Context) { pause(ctx, 700*time.Millisecond) }

func pause(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// inject runs one fault from its beginning to its end.
func (c *campaign) inject(ctx context.Context, name string) {
	k, ok := kinds[name]
	argument := ""
	if !ok {
		name, argument, _ = strings.Cut(name, " @ ")
		k, ok = kinds[name]
	}
	if !ok {
		c.miss(name, "no such fault")
		return
	}
	if k.losing {
		if err := c.calm(ctx, c.healed); err != nil {
			c.violation(Violation{Law: "self-healing", Sale: "all", Detail: fmt.Sprintf("before %q: not calm within %s: %v", name, c.healing(), err)})
			return
		}
	}
	f := fault{campaign: c, argument: argument}
	began := time.Now()
	struck := c.lieInWait(ctx, name)
	what, err := k.run(ctx, &f)
	if at, hit := struck(); hit {
		what += ", and killed " + at.String()
		c.killed = true
	}
	c.healed = time.Now()
	c.say("  %s  %-28s %s (%s)\n", clock(began), name, what, time.Since(began).Round(10*time.Millisecond))
	if err != nil {
		c.miss(name+" "+what, err.Error())
		return
	}
	c.result.Faults[name]++
	c.killed = c.killed || k.kills
	pause(ctx, 100*time.Millisecond)
}

// lieInWait arms, in a long campaign, a point that is reached only while there
// is a fault or right after it; struck tells whether it was.
func (c *campaign) lieInWait(ctx context.Context, name string) (struck func() (Point, bool)) {
	at, ok := c.points.rare(c.rng)
	if c.options.Rounds != nil || name == crashPoint || strings.HasPrefix(name, replyLost) || !ok {
		return func() (Point, bool) { return at, false }
	}
	ctx, leave := context.WithCancel(ctx)
	hit := make(chan bool, 1)
	go func() { hit <- c.points.kill(ctx, at, restMax) }()
	return func() (Point, bool) {
		time.AfterFunc(time.Second, leave)
		if !<-hit {
			return at, false
		}
		leave()
		c.stage.Functions[at.Function].Back()
		return at, true
	}
}

func (c *campaign) miss(name, why string) {
	c.result.Missed = append(c.result.Missed, name+": "+why)
	c.say("  missed %s: %s\n", name, why)
}

func (c *campaign) violation(v Violation) {
	c.result.Violations = append(c.result.Violations, v)
	c.say("VIOLATION %s\n", v)
}

// judge is a checkpoint: it says of each sale what holds.
func (c *campaign) judge(ctx context.Context) error {
	for _, o := range c.offers {
		r, found, err := c.look(ctx, o)
		if err != nil {
			return err
		}
		for _, v := range found {
			c.violation(v)
		}
		c.result.Answers += len(r.answers)
		c.result.Claims += len(r.told)
		c.result.Orders += len(r.orders)
		c.say("  checkpoint %s: %s; %s\n", o.sale.ID, r.summary(), r.verdict())
	}
	c.say("  at rest %s after the last fault\n", c.result.Rests[len(c.result.Rests)-1].Round(100*time.Millisecond))
	return nil
}

// verdict names the laws that were broken, else those that were judged.
func (r *record) verdict() string {
	if len(r.found) > 0 {
		return fmt.Sprintf("%d VIOLATIONS", len(r.found))
	}
	return "all laws hold"
}

func (r *record) summary() string {
	states := map[seckill.OrderStatus]int{}
	for _, o := range r.orders {
		states[o.Status]++
	}
	soldOut := 0
	for _, a := range r.answers {
		if a.problem == "sold_out" {
			soldOut++
		}
	}
	return fmt.Sprintf("%d answers, %d claims told, %d sold out, orders %v, %d instants seen in MySQL, epoch %d",
		len(r.answers), len(r.told), soldOut, states, r.notes.total, r.epoch)
}
