package mysqlstore

import (
	"errors"
	"fmt"
	"testing"

	"seckill/shared/seckill"
)

func TestSnapshotPassesEveryOrderOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale, other := e.sale(20, 1), e.sale(5, 1)
		claims := claimsOf(sale, 23)
		e.place(claims...)
		e.place(claimsOf(other, 2)...)
		e.pays(paymentOf(claims[0], "r"), seckill.PayApplied, seckill.OrderPaid)
		if _, _, err := e.Cancel(e.Context(), claims[1].Claim, claims[1].Buyer); err != nil {
			e.Fatal(err)
		}
		seen := map[string]seckill.Order{}
		var count tally
		stock, err := e.Snapshot(e.Context(), sale.ID, 4, func(orders []seckill.Order) error {
			if len(orders) == 0 || len(orders) > 4 {
				e.Errorf("a chunk of %d", len(orders))
			}
			for _, o := range orders {
				seen[o.ID] = o
				count.add(o.Status)
			}
			return nil
		})
		if err != nil || stock.Available != 1 || stock.Opened != 20 || stock.Seq != claims[22].Seq {
			e.Errorf("stock %+v, %v", stock, err)
		}
		count.is(e, map[string]int{"unpaid": 18, "paid": 1, "cancelled": 1, "rejected": 3})
		for _, c := range claims {
			if stored, _, err := e.Order(e.Context(), c.Claim); err != nil || seen[c.Claim] != stored {
				e.Errorf("passed %+v, stored %+v, %v", seen[c.Claim], stored, err)
			}
		}
	})
}

// Orders that are placed and cancelled while the snapshot is read do not
// show in it.
func TestSnapshotIsOfOneInstant(t *testing.T) {
	t.Parallel()
	e := onMariaDB(t)
	sale := e.sale(100, 1)
	claims := claimsOf(sale, 30)
	e.place(claims...)
	var live int64
	first := true
	stock, err := e.Snapshot(t.Context(), sale.ID, 5, func(orders []seckill.Order) error {
		for _, o := range orders {
			if o.Status.Live() {
				live += o.Quantity
			}
		}
		if first {
			first = false
			e.place(claimOf(sale, "late", 1))
			for _, c := range claims[20:] {
				if _, _, err := e.Cancel(t.Context(), c.Claim, c.Buyer); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil || live != 30 || stock.Available != 70 {
		t.Errorf("%d live units, %+v, %v", live, stock, err)
	}
	e.lawsHold(sale, 79)
}

func TestSnapshotStopsAtAnError(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(5, 1)
		e.place(claimsOf(sale, 3)...)
		stop := errors.New("stop")
		calls := 0
		_, err := e.Snapshot(e.Context(), sale.ID, 1, func([]seckill.Order) error { calls++; return stop })
		if !errors.Is(err, stop) || calls != 1 {
			e.Errorf("%d calls, %v", calls, err)
		}
		none := func([]seckill.Order) error { return fmt.Errorf("unexpected") }
		if _, err := e.Snapshot(e.Context(), "unheard-of", 1, none); !errors.Is(err, seckill.ErrNotFound) {
			e.Errorf("no sale: %v", err)
		}
	})
}
