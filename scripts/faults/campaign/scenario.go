package campaign

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"seckill/scripts/faults/stage"
	"seckill/shared/seckill"
)

// Scenario is a small fixed course of events, and the mutant that it exposes.
type Scenario struct {
	Name string
	// Mutants are the change; Functions have to be built with it, and with
	// Schema the tables, too.
	Mutants   []stage.Mutant
	Functions []string
	Schema    bool
	// Law is the one that the mutant breaks.
	Law string

	units, limit int64
	play         func(context.Context, *scene) error
}

// scene is a scenario that is being played, on one sale.
type scene struct {
	*campaign

	offer *offer
}

// Play plays a scenario on a system of its own and returns the violations. tool
// migrates instead of this program if it is set. rest is how long the system
// may take to be right again.
func (s Scenario) Play(ctx context.Context, programs map[string]string, tool string, rest time.Duration) ([]Violation, error) {
	st, err := stage.New(ctx, stage.Options{Programs: programs, Tool: tool, SweepEvery: sweepEvery})
	if err != nil {
		return nil, err
	}
	defer st.Close()
	if err := observe(ctx, st.DB); err != nil {
		return nil, err
	}
	c := &campaign{
		options: Options{Out: io.Discard}, stage: st, shop: newShop(st), points: newPoints(st),
		rng: rand.New(rand.NewPCG(1, 1)), result: &Result{Faults: map[string]int{}}, //nolint:gosec // repeatable on purpose
	}
	o, err := newOffer(ctx, st, seckill.Sale{ID: "scene", Units: s.units, Limit: s.limit, PayWindow: time.Minute})
	if err != nil {
		return nil, err
	}
	c.offers = []*offer{o}
	playing, end := context.WithTimeout(ctx, playMax)
	err = s.play(playing, &scene{c, o})
	end()
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w; the last answers: %s", s.Name, err, c.shop.history.lastOf(o.sale.ID))
	}
	if trouble := c.atRest(ctx, rest); trouble != nil {
		c.violation(Violation{Law: "self-healing", Sale: o.sale.ID, Detail: trouble.Error()})
	}
	r, err := c.gather(ctx, o)
	if err != nil {
		return nil, err
	}
	return append(c.result.Violations, r.judge()...), nil
}

// buyer returns one who does what he is told.
func (s *scene) buyer(name string) (*buyer, error) {
	return s.shop.buyer(s.offer.sale, name, 1, make(chan struct{}))
}

// claims has new buyers claim one unit each, all at once, until their answers
// are clear, and returns those who were accepted.
func (s *scene) claims(ctx context.Context, names ...string) ([]answer, error) {
	var accepted []answer
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, name := range names {
		b, err := s.buyer(name)
		if err != nil {
			return nil, err
		}
		asking.Go(func() {
			a := b.claim(ctx, name+"-key", 1)
			mu.Lock()
			defer mu.Unlock()
			if a.accepted() {
				accepted = append(accepted, a)
			}
		})
	}
	asking.Wait()
	return accepted, ctx.Err()
}

// ordered has buyers claim and waits until each has an order.
func (s *scene) ordered(ctx context.Context, names ...string) ([]answer, error) {
	accepted, err := s.claims(ctx, names...)
	if err != nil {
		return nil, err
	}
	if len(accepted) != len(names) {
		return nil, fmt.Errorf("%d of %d buyers were accepted", len(accepted), len(names))
	}
	for _, a := range accepted {
		if err := s.become(ctx, a, seckill.ClaimOrdered); err != nil {
			return nil, err
		}
	}
	return accepted, nil
}

// become waits until a claim has a status.
func (s *scene) become(ctx context.Context, a answer, want seckill.ClaimStatus) error {
	return s.until(ctx, a, func(status string) bool { return status == string(want) })
}

// over waits until a claim is settled, whatever became of it.
func (s *scene) over(ctx context.Context, a answer) error {
	return s.until(ctx, a, func(status string) bool { return status != "" && status != string(seckill.ClaimReserved) })
}

func (s *scene) until(ctx context.Context, a answer, good func(status string) bool) error {
	b, err := s.buyer(a.buyer)
	if err != nil {
		return err
	}
	return poll(ctx, 20*time.Second, func() error {
		if got := b.status(ctx, a.claim, 1); !good(got.state) {
			return fmt.Errorf("claim %s is %q (%d)", a.claim, got.state, got.code)
		}
		return nil
	})
}

// playMax bounds what happens in a scenario.
const playMax = time.Minute
