package mysqlstore

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"seckill/shared/seckill"
)

func TestCancelGivesTheUnitsBackOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		for _, limit := range []int64{1, 3} {
			sale := e.sale(10, limit)
			c, kept := claimOf(sale, "a", limit), claimOf(sale, "b", 1)
			e.place(c, kept)
			var seen tally
			together(min(e.racers, 20), func(int) {
				order, row, err := e.Cancel(e.Context(), c.Claim, "a")
				if err != nil || order.Status != seckill.OrderCancelled {
					e.Errorf("cancelled %+v, %v", order, err)
				}
				seen.add(row.ID != 0)
				if want := []seckill.Return{order.Return()}; row.ID != 0 && !slices.Equal(row.Returns, want) {
					e.Errorf("returns %+v, want %+v", row.Returns, want)
				}
			})
			if seen.n["true"] != 1 {
				e.Errorf("cancelled %v times", seen.n)
			}
			e.status(kept.Claim, seckill.OrderUnpaid)
			e.lawsHold(sale, 9)
		}
	})
}

func TestCancelledRowIsTheOneInTheOutbox(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		e.place(c)
		_, row, err := e.Cancel(e.Context(), c.Claim, "a")
		if err != nil || len(row.Announce) != 1 || row.Announce[0].Type != seckill.EventOrderCancelled {
			e.Fatalf("row %+v, %v", row, err)
		}
		rows, err := e.Outbox(e.Context(), row.ID-1, 1, 0)
		if err != nil || len(rows) != 1 || !reflect.DeepEqual(rows[0], row) {
			e.Errorf("stored %+v, %v\nanswered %+v", rows, err, row)
		}
	})
}

func TestCancelOfWhatCannotBe(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(2, 1)
		due, mine, refused := claimOf(sale, "b", 1), claimOf(sale, "d", 1), claimOf(sale, "c", 1)
		e.place(due)
		e.makeDue(sale)
		e.place(mine, refused)
		cases := []struct {
			id, buyer string
			err       error
			status    seckill.OrderStatus
		}{
			{due.Claim, "b", seckill.ErrConflict, seckill.OrderExpired},
			{refused.Claim, "c", seckill.ErrConflict, seckill.OrderRejected},
			{mine.Claim, "D", seckill.ErrNotFound, ""},
			{"unheard-of", "d", seckill.ErrNotFound, ""},
		}
		for _, c := range cases {
			order, row, err := e.Cancel(e.Context(), c.id, c.buyer)
			if !errors.Is(err, c.err) || order.Status != c.status || row.ID != 0 {
				e.Errorf("%s by %s: %+v, %+v, %v", c.id, c.buyer, order, row, err)
			}
		}
		e.status(due.Claim, seckill.OrderUnpaid)
		e.status(mine.Claim, seckill.OrderUnpaid)
		e.lawsHold(sale, 0)
	})
}

func TestCancelBeforeTheOrderIsWritten(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		for i := range 2 {
			order, row, err := e.CancelUnwritten(e.Context(), c)
			if err != nil || order.Status != seckill.OrderCancelled || (i == 0) != (row.ID != 0) {
				e.Fatalf("%d: %+v, %+v, %v", i, order, row, err)
			}
			if i == 0 && !slices.Equal(row.Returns, []seckill.Return{{Claim: c.Claim, Buyer: "a", Quantity: 1}}) {
				e.Errorf("returns %+v", row.Returns)
			}
		}
		if o := e.status(c.Claim, seckill.OrderCancelled); o.Reason != seckill.ReasonCancelled {
			e.Errorf("stored %+v", o)
		}
		late := e.place(c, claimOf(sale, "a", 1))
		if late[0].New || late[0].Settlement(seckill.AcceptedClaim{}).Status != seckill.ClaimReleased {
			e.Errorf("the late claim became %+v", late[0])
		}
		if outcome(late[1]) != "unpaid" {
			e.Errorf("the buyer's next claim became %+v", late[1])
		}
		e.lawsHold(sale, 9)
		other := c
		other.Buyer = "b"
		if _, _, err := e.CancelUnwritten(e.Context(), other); !errors.Is(err, seckill.ErrConflict) {
			e.Errorf("another buyer's: %v", err)
		}
	})
}

func TestCancelRacesTheOrdersWriting(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		n := e.racers
		sale := e.sale(int64(n), 2)
		claims := claimsOf(sale, n/2)
		together(n, func(i int) {
			c := claims[i/2]
			if i%2 == 0 {
				if _, err := e.PlaceOrders(e.Context(), []seckill.AcceptedClaim{c}); err != nil {
					e.Error(err)
				}
			} else if _, row, err := e.CancelUnwritten(e.Context(), c); err != nil || row.ID == 0 {
				e.Errorf("%+v, %v", row, err)
			}
		})
		for _, c := range claims {
			e.status(c.Claim, seckill.OrderCancelled)
		}
		e.lawsHold(sale, int64(n))
	})
}

// Pay, cancel and expiry of the same due orders: each order ends in one way,
// and the stock and the money say which.
func TestPayCancelExpireAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		n := e.racers / 4
		sale := e.sale(int64(n), 3)
		claims := claimsOf(sale, n)
		e.place(claims...)
		soon := ms(time.Now().Add(20 * time.Millisecond))
		e.exec(`UPDATE orders SET pay_by = ? WHERE sale = ?`, soon, sale.ID)
		together(3*n, func(i int) {
			c := claims[i/3]
			var err error
			switch i % 3 {
			case 0:
				_, _, err = e.Pay(e.Context(), paymentOf(c, c.Claim))
			case 1:
				_, _, err = e.Cancel(e.Context(), c.Claim, c.Buyer)
				if errors.Is(err, seckill.ErrConflict) {
					err = nil
				}
			case 2:
				_, _, err = e.ExpireDue(e.Context(), 10)
			}
			if err != nil {
				e.Error(err)
			}
		})
		e.makeDueUnpaid(sale)
		if _, _, err := e.ExpireDue(e.Context(), 500); err != nil {
			e.Fatal(err)
		}
		units, err := e.UnitsByStatus(e.Context(), sale.ID)
		if err != nil || units[seckill.OrderUnpaid] != 0 {
			e.Errorf("units %v, %v", units, err)
		}
		paid := units[seckill.OrderPaid]
		e.lawsHold(sale, int64(n)-paid)
		applied := e.count(`SELECT COUNT(*) FROM payments WHERE result = 'applied'`)
		due := e.count(`SELECT COUNT(*) FROM payments WHERE result = 'refund_due'`)
		if applied != paid+units[seckill.OrderRefunding] || applied+due != int64(n) {
			e.Errorf("%d payments applied, %d to refund; units %v", applied, due, units)
		}
		if refunds := e.count(`SELECT COUNT(*) FROM refunds`); refunds != int64(n)-paid {
			e.Errorf("%d refunds, want %d; units %v", refunds, int64(n)-paid, units)
		}
		if back := e.returned(); back != int64(n)-paid {
			e.Errorf("%d claims return their units, want %d", back, int64(n)-paid)
		}
	})
}

// makeDueUnpaid moves the deadlines of a sale's unpaid orders into the past.
func (e env) makeDueUnpaid(sale seckill.Sale) {
	e.Helper()
	e.exec(`UPDATE orders SET pay_by = ? WHERE sale = ? AND status = 'unpaid'`, ms(time.Now().Add(-time.Minute)), sale.ID)
}

// returned counts the returns in the outbox; each claim may return once.
func (e env) returned() int64 {
	e.Helper()
	rows, err := e.Outbox(e.Context(), 0, 100_000, 0)
	if err != nil {
		e.Fatal(err)
	}
	seen := map[string]bool{}
	for _, row := range rows {
		for _, r := range row.Returns {
			if seen[r.Claim] {
				e.Errorf("claim %s returns its units twice", r.Claim)
			}
			seen[r.Claim] = true
		}
	}
	return int64(len(seen))
}
