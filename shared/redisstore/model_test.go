package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// model is what a sale should be: the claims that were accepted and what
// became of each. It is so small that it can be seen to be right.
type model struct {
	units, limit int64
	ticket       seckill.Ticket // one that enters; none if the sale asks for none
	claims       map[string]*seckill.Claim
	order        []string
}

func (m *model) held(buyer string) (units int64) {
	for _, c := range m.claims {
		if c.Buyer == buyer && (c.Status == seckill.ClaimReserved || c.Status == seckill.ClaimOrdered) {
			units += c.Quantity
		}
	}
	return units
}

func (m *model) sum(states ...seckill.ClaimStatus) (units int64) {
	for _, c := range m.claims {
		if slices.Contains(states, c.Status) {
			units += c.Quantity
		}
	}
	return units
}

func (m *model) stock() int64 {
	return m.units - m.sum(seckill.ClaimReserved, seckill.ClaimOrdered)
}

// decide is what claim.lua should answer when no rate is in the way.
func (m *model) decide(r seckill.ClaimRequest) seckill.Outcome {
	if c := m.claims[r.ID]; c != nil {
		if c.Buyer != r.Buyer || c.Quantity != r.Quantity {
			return seckill.OutcomeReused
		}
		return seckill.OutcomeReserved
	}
	switch held := m.held(r.Buyer); {
	case held >= m.limit:
		return seckill.OutcomeHeld
	case held+r.Quantity > m.limit:
		return seckill.OutcomeLimit
	case r.Ticket.Kind == seckill.TicketNone && m.ticket.Kind != seckill.TicketNone:
		return seckill.OutcomeNoTicket
	case r.Ticket != m.ticket:
		return seckill.OutcomeOldTicket
	case m.stock() < r.Quantity:
		return seckill.OutcomeSoldOut
	}
	m.claims[r.ID] = &seckill.Claim{ID: r.ID, Buyer: r.Buyer, Quantity: r.Quantity, Status: seckill.ClaimReserved}
	m.order = append(m.order, r.ID)
	return seckill.OutcomeReserved
}

// bad are tickets that do not enter where this one does.
func bad(good seckill.Ticket) []seckill.Ticket {
	kind, epoch, over := good, good, good
	kind.Kind, epoch.Epoch, over.Until = seckill.TicketWork, good.Epoch+1, time.Now().Add(-time.Second)
	return []seckill.Ticket{{}, kind, epoch, over}
}

// play runs random operations on a sale and on its model and returns the
// first difference, or the first law that does not hold.
func play(ctx context.Context, w world, sale seckill.Sale, seed uint64, steps int) error {
	m := &model{units: sale.Units, limit: sale.Limit, ticket: ticketFor(sale), claims: map[string]*seckill.Claim{}}
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test must be able to repeat itself
	for step := range steps {
		if err := m.step(ctx, w, sale, random); err != nil {
			return fmt.Errorf("seed %d step %d: %w", seed, step, err)
		}
		if err := m.compare(ctx, w, sale); err != nil {
			return fmt.Errorf("seed %d after step %d: %w", seed, step, err)
		}
	}
	return nil
}

func (m *model) step(ctx context.Context, w world, sale seckill.Sale, random *rand.Rand) error {
	if random.IntN(3) == 0 || len(m.order) == 0 {
		return m.stepClaim(ctx, w, sale, random)
	}
	c := m.claims[m.order[random.IntN(len(m.order))]]
	if random.IntN(3) == 0 {
		if c.Status == seckill.ClaimReserved || c.Status == seckill.ClaimOrdered {
			c.Status = seckill.ClaimReleased
		}
		_, err := w.Restock(ctx, sale.ID, []seckill.Return{{Claim: c.ID, Buyer: c.Buyer, Quantity: c.Quantity}})
		return err
	}
	to := []seckill.ClaimStatus{seckill.ClaimOrdered, seckill.ClaimOrdered, seckill.ClaimRejected}[random.IntN(3)]
	if c.Status == seckill.ClaimReserved || (c.Status == seckill.ClaimOrdered && to == seckill.ClaimRejected) {
		c.Status = to
	}
	_, err := w.Settle(ctx, sale.ID, []seckill.Settlement{{Claim: c.ID, Buyer: c.Buyer, Quantity: c.Quantity, Status: to}})
	return err
}

func (m *model) stepClaim(ctx context.Context, w world, sale seckill.Sale, random *rand.Rand) error {
	batch := make([]seckill.ClaimRequest, 1+random.IntN(4))
	for i := range batch {
		batch[i] = request(fmt.Sprintf("b%d", random.IntN(5)), 1+random.Int64N(sale.Limit+1))
		batch[i].Ticket = m.ticket
		if m.ticket.Kind != seckill.TicketNone && random.IntN(4) == 0 {
			batch[i].Ticket = bad(m.ticket)[random.IntN(4)]
		}
		if len(m.order) > 0 && random.IntN(4) == 0 { // a repeat, perhaps of another buyer's claim
			batch[i].ID = m.order[random.IntN(len(m.order))]
			if c := m.claims[batch[i].ID]; random.IntN(3) > 0 {
				batch[i].Buyer, batch[i].Quantity = c.Buyer, c.Quantity
			}
		}
	}
	for _, r := range batch {
		if err := w.raw.Del(ctx, w.key(sale.ID, "rate:"+r.Buyer)).Err(); err != nil {
			return err
		}
	}
	decisions, err := w.Claim(ctx, sale.ID, batch)
	if err != nil {
		return err
	}
	for i, r := range batch {
		got := decisions[i].Outcome
		if got == seckill.OutcomeRate { // attempted twice in this batch: the first one was the attempt
			if !slices.ContainsFunc(batch[:i], func(b seckill.ClaimRequest) bool { return b.Buyer == r.Buyer }) {
				return fmt.Errorf("%+v: rate at the first attempt", r)
			}
			continue
		}
		if want := m.decide(r); got != want {
			return fmt.Errorf("%+v: %s, want %s", r, got, want)
		}
	}
	return nil
}

// compare checks the numbers, the claims and the claim log against the model.
func (m *model) compare(ctx context.Context, w world, sale seckill.Sale) error {
	h, err := w.Head(ctx, sale.ID)
	if err != nil {
		return err
	}
	reserved := m.sum(seckill.ClaimReserved)
	if h.Stock != m.stock() || h.Reserved != reserved || !h.StockOK || h.Stock < 0 || h.Opened != h.Stock+h.Held {
		return fmt.Errorf("stock %d reserved %d sound %v, want %d %d", h.Stock, h.Reserved, h.StockOK, m.stock(), reserved)
	}
	unsettled, _, err := w.Unsettled(ctx, sale.ID, "", 0, 1000)
	if err != nil {
		return err
	}
	var logged int64
	for _, c := range unsettled {
		logged += c.Quantity
	}
	if logged != reserved {
		return fmt.Errorf("the claim log holds %d units, want %d", logged, reserved)
	}
	if len(m.order) == 0 {
		return nil
	}
	claims, err := w.ClaimsOf(ctx, sale.ID, m.order)
	if err != nil {
		return err
	}
	for i, id := range m.order {
		if claims[i].Status != m.claims[id].Status || claims[i].Buyer != m.claims[id].Buyer {
			return fmt.Errorf("claim %+v, want %+v", claims[i], *m.claims[id])
		}
	}
	return nil
}

func TestRandomOperationsFollowTheModel(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		for seed := range uint64(12) {
			sale := saleFor(t, 1+int64(seed), 1+int64(seed%3))
			sale.ID += fmt.Sprintf("-%d", seed)
			sale.Ticket = []seckill.TicketKind{seckill.TicketNone, seckill.TicketSigned}[seed%2]
			w.build(t, sale, sale.Units, nil)
			if err := play(t.Context(), w, sale, seed, 120); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Each mutant breaks one rule of the scripts; the model must notice each.
func TestAMutatedScriptIsNoticed(t *testing.T) {
	t.Parallel()
	mutants := map[string][2]string{
		"limit off by one":        {"if held >= limit then", "if held > limit then"},
		"limit not added up":      {"if held + units > limit then", "if units > limit then"},
		"oversell by one":         {"if s.stock < units then", "if s.stock < units - 1 then"},
		"last unit never sells":   {"if s.stock < units then", "if s.stock <= units then"},
		"a repeat counts again":   {"if record then", "if false then"},
		"restock twice":           {"if was == want or was == 'released' or was == 'rejected' then", "if was == want and was == 'ordered' then"},
		"restock forgets units":   {"s.stock, s.debt, s.held = s.stock + units - paid", "s.stock, s.debt, s.held = s.stock + units - 1 - paid"},
		"buyer keeps his units":   {"    drop_held(buyer, claim)\n", ""},
		"reserved is not settled": {"if counting then s.reserved = s.reserved - units end", ""},
		"log entry stays":         {"    b.ended[#b.ended + 1] = entry\n", ""},
		"nobody needs a ticket":   {"if not kind then", "if false then"},
		"any ticket enters":       {"if why then return why end", "if why == 'ticket_required' then return why end"},
		"a ticket of any kind":    {"if kind ~= sale[8] or", "if"},
		"a ticket of any epoch":   {"or epoch ~= s.epoch or", "or"},
		"a ticket for ever":       {"or tonumber(until_ms) <= now then", "then"},
		"no claim log":            {"redis.call('XADD', KEYS[5], '*', 'claim', c.id .. '|' .. c.buyer .. '|' .. c.units .. terms .. c.seq .. '|' .. now_text)", "'0-1'"},
	}
	addr := testenv.Redis(t)
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openAt(t, addr)
			changed := false
			w.Mutate(func(script string) string {
				spoiled := strings.Replace(script, m[0], m[1], 1)
				changed = changed || spoiled != script
				return spoiled
			})
			if !changed {
				t.Fatalf("the scripts have no %q any more", m[0])
			}
			for seed := range uint64(12) {
				sale := saleFor(t, 1+int64(seed), 1+int64(seed%3))
				sale.ID += fmt.Sprintf("-%d", seed)
				sale.Ticket = []seckill.TicketKind{seckill.TicketNone, seckill.TicketSigned}[seed%2]
				sale.Ticket = []seckill.TicketKind{seckill.TicketNone, seckill.TicketSigned}[seed%2]
				w.build(t, sale, sale.Units, nil)
				if play(t.Context(), w, sale, seed, 120) != nil {
					return
				}
			}
			t.Error("the model did not notice")
		})
	}
}

// 200 buyers wait at the gate for 7 units.
func TestStartGate(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 7, 1)
		gate := make(chan struct{})
		outcomes := make(chan seckill.Outcome, 200)
		var wg sync.WaitGroup
		for _, buyer := range buyers(200) {
			wg.Go(func() {
				<-gate
				d, err := w.Claim(t.Context(), sale.ID, []seckill.ClaimRequest{request(buyer, 1)})
				if err != nil && !errors.Is(err, seckill.ErrUnavailable) {
					t.Error(err)
				}
				if err == nil {
					outcomes <- d[0].Outcome
				}
			})
		}
		close(gate)
		wg.Wait()
		close(outcomes)
		count, got := map[seckill.Outcome]int{}, 0
		for o := range outcomes {
			count[o]++
			got++
		}
		// A call that got no answer on a busy machine is unknown, not refused.
		if count[seckill.OutcomeReserved] > 7 || count[seckill.OutcomeReserved]+count[seckill.OutcomeSoldOut] != got {
			t.Fatalf("outcomes %v", count)
		}
		w.wantNumbers(t, sale, 0, 7, 7)
	})
}
