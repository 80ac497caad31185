package expirycron_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	expirycron "seckill/functions/expiry-cron"
	"seckill/shared/audit"
	"seckill/shared/seckill"
)

// provider gives money back as a test says, and remembers what it was asked.
type provider struct {
	mu      sync.Mutex
	answers []string // in turn: done, pending, error, hang; then done
	asked   map[int64]int
}

func (*provider) Name() string { return "test" }

func (p *provider) Refund(ctx context.Context, r seckill.Refund) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = map[int64]int{}
	}
	p.asked[r.ID]++
	if len(p.answers) == 0 {
		return true, nil
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	switch answer {
	case "pending":
		return false, nil
	case "error":
		return true, errors.New("connection refused")
	case "hang":
		<-ctx.Done()
		return true, ctx.Err()
	}
	return true, nil
}

// paid makes n paid orders.
func (s *shop) paid(n int) []seckill.AcceptedClaim {
	s.t.Helper()
	claims := s.claim(n)
	s.order(claims)
	for i, c := range claims {
		_, result, err := s.mysql.Pay(s.t.Context(), seckill.Payment{
			Callback: fmt.Sprint("m", i), Order: c.Claim, Provider: "test", Reference: fmt.Sprint("r", i),
			AmountMinor: c.AmountMinor(), Currency: c.Currency,
		})
		must(s.t, err)
		if result != seckill.PayApplied {
			s.t.Fatalf("payment %d: %s", i, result)
		}
	}
	return claims
}

func (s *shop) audit() audit.Report {
	s.t.Helper()
	r, err := audit.Sale(s.t.Context(), s.mysql, s.redis, s.id)
	must(s.t, err)
	if !r.Laws.Hold() {
		s.t.Fatalf("a law does not hold: %+v", r)
	}
	return r
}

func TestSweepRefundsUntilTheProviderHasDone(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, time.Hour)
	p := &provider{answers: []string{"error", "pending"}}
	claims := s.paid(10)
	for _, c := range claims[:9] {
		_, _, err := s.mysql.Cancel(t.Context(), c.Claim, c.Buyer)
		must(t, err)
	}
	if r := s.sweep(); r.Refunded != 0 || r.Refunding != 9 || r.RestMS != 0 {
		t.Errorf("without a provider: %+v", r)
	}
	s.makeRefundsDue()
	s.cron.RefundBy(p)
	if r := s.sweep(); r.Refunded != 7 || r.Refunding != 2 || r.RestMS != 0 || len(r.Errors) != 0 {
		t.Errorf("two are not given: %+v", r)
	}
	if r := s.sweep(); r.Refunded != 0 || r.Refunding != 2 {
		t.Errorf("asked again at once: %+v", r)
	}
	s.makeRefundsDue()
	if r := s.sweep(); r.Refunded != 2 || r.Refunding != 0 {
		t.Errorf("the last two: %+v", r)
	}
	s.sweep()
	again := 0
	for _, n := range p.asked {
		again += n - 1
	}
	if len(p.asked) != 9 || again != 2 {
		t.Errorf("asked %v", p.asked)
	}
	for i, c := range claims {
		want := seckill.OrderRefunded
		if i == 9 {
			want = seckill.OrderPaid
		}
		if o, _, err := s.mysql.Order(t.Context(), c.Claim); err != nil || o.Status != want {
			t.Errorf("order %d is %s, %v", i, o.Status, err)
		}
	}
	r := s.audit()
	if want := (seckill.Money{Currency: "CNY", Received: 99_000, Refunded: 89_100, Kept: 9900}); len(r.Money) != 1 || r.Money[0] != want {
		t.Errorf("money %+v", r.Money)
	}
	if r.Stock == nil || *r.Stock != 19 {
		t.Errorf("stock %+v", r)
	}
}

// makeRefundsDue lets the time between two tries pass.
func (s *shop) makeRefundsDue() {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), `UPDATE refunds SET due_at = created_at`)
	must(s.t, err)
}

// A provider that hangs leaves time to note that, and to ask for the others,
// however little time a sweep has.
func TestRefundThatHangsKeepsNoOtherFromBeingTried(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, time.Hour)
	for _, c := range s.paid(2) {
		_, _, err := s.mysql.Cancel(t.Context(), c.Claim, c.Buyer)
		must(t, err)
	}
	p := &provider{answers: []string{"hang"}}
	config := expirycron.Config{Timeout: 4 * time.Second, Batch: 7, RoundsMax: 100, UnsettledAfter: time.Second, PrepareAhead: time.Hour}
	r := expirycron.New(config, s.mysql, s.redis, s.queue, time.Now).RefundBy(p).Sweep(t.Context())
	if r.Refunded != 1 || r.Refunding != 1 || len(r.Errors) != 0 {
		t.Errorf("%+v", r)
	}
	if r := s.sweep(); r.Refunding != 1 {
		t.Errorf("asked again at once: %+v", r)
	}
}

// Sweeps at once ask for the same refunds, and each order is refunded once.
func TestSweepsAtOnceRefundOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, time.Hour)
	p := &provider{}
	s.cron.RefundBy(p)
	claims := s.paid(15)
	for _, c := range claims {
		_, _, err := s.mysql.Cancel(t.Context(), c.Claim, c.Buyer)
		must(t, err)
	}
	var wg sync.WaitGroup
	reports := make([]expirycron.Report, 4)
	for i := range reports {
		wg.Go(func() { reports[i] = s.cron.Sweep(t.Context()) })
	}
	wg.Wait()
	for _, r := range reports {
		if len(r.Errors) > 0 || len(r.Violations) > 0 {
			t.Errorf("%+v", r)
		}
	}
	s.sweep()
	r := s.audit()
	if r.Orders[seckill.OrderRefunded] != 15 || len(p.asked) != 15 || *r.Stock != 20 {
		t.Errorf("%+v, asked %v", r, p.asked)
	}
}

// Redis loses everything while orders are on their way back: what is built
// again does not hold their units.
func TestRebuildKnowsRefundedOrders(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, time.Hour)
	claims := s.paid(4)
	s.cron.RefundBy(&provider{answers: []string{"error", "error"}})
	for _, c := range claims[:2] {
		_, _, err := s.mysql.Cancel(t.Context(), c.Claim, c.Buyer)
		must(t, err)
	}
	must(t, s.raw.FlushDB(t.Context()).Err())
	for range 10 {
		s.sweep()
	}
	r := s.audit()
	if r.Stock == nil || *r.Stock != 18 || r.Orders[seckill.OrderRefunding] != 2 {
		t.Errorf("%+v", r)
	}
}
