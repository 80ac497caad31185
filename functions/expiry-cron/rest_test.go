package expirycron_test

import (
	"testing"
	"time"

	expirycron "seckill/functions/expiry-cron"
	"seckill/shared/seckill"
)

// restAt returns how long a sweep at an instant says that none is needed.
func (s *shop) restAt(at time.Time) time.Duration {
	s.t.Helper()
	config := expirycron.Config{
		Timeout: 30 * time.Second, Batch: 7, RoundsMax: 100, UnsettledAfter: time.Minute, PrepareAhead: time.Hour,
		AwakeAhead: 15 * time.Minute, RestAfterClose: time.Hour, RestMax: 10 * time.Minute,
	}
	cron := expirycron.New(config, s.mysql, s.redis, s.queue, func() time.Time { return at })
	r := cron.Sweep(s.t.Context())
	if len(r.Errors) > 0 || len(r.Violations) > 0 {
		s.t.Fatalf("sweep: %+v", r)
	}
	return time.Duration(r.RestMS) * time.Millisecond
}

func TestRestsOnlyBetweenSales(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, time.Hour)
	sale, err := s.mysql.Sale(t.Context(), s.id)
	must(t, err)
	for _, c := range []struct {
		name string
		at   time.Time
		want time.Duration
	}{
		{"long before it opens", sale.OpensAt.Add(-24 * time.Hour), 10 * time.Minute},
		{"before it opens", sale.OpensAt.Add(-16 * time.Minute), time.Minute},
		{"shortly before it opens", sale.OpensAt.Add(-14 * time.Minute), 0},
		{"while it is open", sale.OpensAt.Add(time.Minute), 0},
		{"shortly after it closed", sale.ClosesAt.Add(59 * time.Minute), 0},
		{"after it closed", sale.ClosesAt.Add(61 * time.Minute), 10 * time.Minute},
	} {
		if got := s.restAt(c.at); got != c.want {
			t.Errorf("%s: rests for %s, want %s", c.name, got, c.want)
		}
	}
}

func TestRestsNotWhileSomethingIsOpen(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, time.Hour)
	sale, err := s.mysql.Sale(t.Context(), s.id)
	must(t, err)
	later := sale.ClosesAt.Add(2 * time.Hour)
	wantRest := func(why string, want bool) {
		t.Helper()
		if got := s.restAt(later); (got > 0) != want {
			t.Fatalf("%s: rests for %s", why, got)
		}
	}
	wantRest("nothing was claimed", true)
	claims := s.claim(1)
	wantRest("a claim is reserved", false)
	s.order(claims)
	s.sweep() // publishes that there is an order
	wantRest("an order is unpaid", false)
	order, _, err := s.mysql.Order(t.Context(), claims[0].Claim)
	must(t, err)
	_, _, err = s.mysql.Pay(t.Context(), seckill.Payment{
		Order: order.ID, Callback: "m1", Provider: "test", Reference: "r1", AmountMinor: order.AmountMinor, Currency: order.Currency,
	})
	must(t, err)
	wantRest("the payment is to be published", false)
	wantRest("the order is paid", true)
}
