package mysqlstore

import (
	"slices"
	"testing"

	"seckill/shared/seckill"
)

func TestLimitIsJudgedInOrder(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name       string
		limit      int64
		quantities []int64
		want       []string
		available  int64
	}{
		{"one", 1, []int64{1, 1}, []string{"unpaid", "limit_reached"}, 99},
		{"one of two at once", 1, []int64{2, 1}, []string{"limit_reached", "unpaid"}, 99},
		{"five", 5, []int64{3, 3, 2, 1}, []string{"unpaid", "limit_reached", "unpaid", "limit_reached"}, 95},
	}
	onEach(t, func(e env) {
		for _, c := range cases {
			sale := e.sale(100, c.limit)
			claims := make([]seckill.AcceptedClaim, len(c.quantities))
			for i, q := range c.quantities {
				claims[i] = claimOf(sale, "a", q)
			}
			if got := outcomes(e.place(claims...)); !slices.Equal(got, c.want) {
				e.Errorf("%s: placed %v, want %v", c.name, got, c.want)
			}
			e.lawsHold(sale, c.available)
			if got := outcome(e.place(claimOf(sale, "a", 1))[0]); got != "limit_reached" {
				e.Errorf("%s: one more is %s", c.name, got)
			}
			if got := outcome(e.place(claimOf(sale, "A", 1))[0]); got != "unpaid" {
				e.Errorf("%s: buyer A is taken for a: %s", c.name, got)
			}
			e.lawsHold(sale, c.available-1)
		}
	})
}

func TestRaceForTheLimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		for _, limit := range []int64{1, 3} {
			sale := e.sale(1000, limit)
			var seen tally
			together(min(e.racers, 60), func(int) {
				placed, err := e.PlaceOrders(e.Context(), []seckill.AcceptedClaim{claimOf(sale, "a", 1), claimOf(sale, "b", 1)})
				if err != nil {
					e.Error(err)
					return
				}
				seen.add(outcome(placed[0]))
			})
			if seen.n["unpaid"] != int(limit) {
				e.Errorf("limit %d: %v", limit, seen.n)
			}
			e.lawsHold(sale, 1000-2*limit)
		}
	})
}

func TestBuyerMayClaimAgainAfterHisOrderEnded(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		for _, limit := range []int64{1, 2} {
			sale := e.sale(5, limit)
			cancelled, expired := claimOf(sale, "u1", limit), claimOf(sale, "u2", limit)
			e.place(cancelled, expired)
			if _, _, err := e.Cancel(e.Context(), cancelled.Claim, "u1"); err != nil {
				e.Fatal(err)
			}
			e.makeDue(sale)
			if _, n, err := e.ExpireDue(e.Context(), 10); err != nil || n != 1 {
				e.Fatal(n, err)
			}
			e.lawsHold(sale, 5)
			got := outcomes(e.place(claimOf(sale, "u1", limit), claimOf(sale, "u2", limit), claimOf(sale, "u1", 1)))
			if want := []string{"unpaid", "unpaid", "limit_reached"}; !slices.Equal(got, want) {
				e.Errorf("placed %v, want %v", got, want)
			}
			e.lawsHold(sale, 5-2*limit)
		}
	})
}
