package seckill_test

import (
	"strings"
	"testing"

	"seckill/shared/seckill"
)

func TestNamesThatAreAllowed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		valid   func(string) bool
		yes, no []string
	}{
		"slug":  {seckill.ValidSlug, []string{"a", "0-z", long}, []string{"", "A", "a_b", "a b", "a}{b", "é", "a\n", long + "a"}},
		"buyer": {seckill.ValidBuyer, []string{"Alice", "a.b_c@d:e-9", long}, []string{"", "a}{b", "*", "a b", "a\n", "𠮷", "a/b", long + "a"}},
		"claim": {
			seckill.ValidClaimID,
			[]string{"01890000-0000-7000-8000-00000000000f"},
			[]string{"", "x", "01890000-0000-7000-8000-00000000000F", "01890000-0000-7000-8000-00000000000g", "0189000000000-7000-8000-00000000000f", "01890000-0000-7000-8000-00000000000f0", "018900000-000-7000-8000-00000000000f"},
		},
		"currency": {seckill.ValidCurrency, []string{"CNY"}, []string{"", "cny", "CN", "CNYX", "C1Y"}},
	} {
		for _, s := range c.yes {
			if !c.valid(s) {
				t.Errorf("%s: %q is refused", name, s)
			}
		}
		for _, s := range c.no {
			if c.valid(s) {
				t.Errorf("%s: %q is taken", name, s)
			}
		}
	}
}

// The state picture: what may follow what, and nothing else.
func TestOrderStates(t *testing.T) {
	t.Parallel()
	allowed := map[seckill.OrderStatus]map[seckill.OrderStatus]bool{
		seckill.OrderUnpaid:    {seckill.OrderPaid: true, seckill.OrderCancelled: true, seckill.OrderExpired: true},
		seckill.OrderPaid:      {seckill.OrderRefunding: true},
		seckill.OrderRefunding: {seckill.OrderRefunded: true},
	}
	for _, from := range seckill.OrderStatuses() {
		for _, to := range seckill.OrderStatuses() {
			if from.Can(to) != allowed[from][to] {
				t.Errorf("%s to %s: %v", from, to, from.Can(to))
			}
		}
		if from.Live() != (from == seckill.OrderUnpaid || from == seckill.OrderPaid) {
			t.Errorf("%s live: %v", from, from.Live())
		}
	}
}
