package mysqlstore

import (
	"testing"
	"time"

	"seckill/shared/seckill"
)

func TestOutboxIsReadInOrderAndFinished(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		claims := claimsOf(sale, 3)
		for _, c := range claims {
			e.place(c)
		}
		_, row, err := e.Cancel(e.Context(), claims[0].Claim, claims[0].Buyer)
		if err != nil {
			e.Fatal(err)
		}
		read := func(after int64, sizeMax int, minAge time.Duration) []seckill.OutboxRow {
			e.Helper()
			rows, err := e.Outbox(e.Context(), after, sizeMax, minAge)
			if err != nil {
				e.Fatal(err)
			}
			return rows
		}
		all := read(0, 100, 0)
		if len(all) != 4 || all[3].ID != row.ID {
			e.Fatalf("rows %+v", all)
		}
		// The order was cancelled since, but what is announced is its creation.
		if a := all[0].Announce[0]; a.Type != seckill.EventOrderCreated || a.Data.Status != seckill.OrderUnpaid || a.Data.PayBy == nil {
			e.Errorf("announced %+v", a)
		}
		if page := read(all[0].ID, 2, 0); len(page) != 2 || page[0].ID != all[1].ID || page[1].ID != all[2].ID {
			e.Errorf("page %+v", page)
		}
		if young := read(0, 100, time.Hour); len(young) != 0 {
			e.Errorf("too young: %+v", young)
		}
		if err := e.OutboxReturned(e.Context(), row.ID); err != nil {
			e.Fatal(err)
		}
		if left := read(row.ID-1, 1, 0); len(left) != 1 || len(left[0].Returns) != 0 || len(left[0].Announce) != 1 {
			e.Errorf("left %+v", left)
		}
		for range 2 {
			if err := e.OutboxDone(e.Context(), []int64{all[0].ID, row.ID}); err != nil {
				e.Fatal(err)
			}
		}
		if rest := read(0, 100, 0); len(rest) != 2 || rest[0].ID != all[1].ID {
			e.Errorf("rest %+v", rest)
		}
		if err := e.OutboxReturned(e.Context(), row.ID); err != nil {
			e.Errorf("a row that is gone: %v", err)
		}
		if err := e.OutboxDone(e.Context(), nil); err != nil {
			e.Errorf("no rows: %v", err)
		}
	})
}

func TestPendingReturns(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		e.place(c)
		pending := func(want bool) {
			e.Helper()
			if got, err := e.ReturnsPending(e.Context(), sale.ID); err != nil || got != want {
				e.Errorf("pending %v, %v, want %v", got, err, want)
			}
		}
		pending(false)
		_, row, err := e.Cancel(e.Context(), c.Claim, "a")
		if err != nil {
			e.Fatal(err)
		}
		pending(true)
		if err := e.OutboxReturned(e.Context(), row.ID); err != nil {
			e.Fatal(err)
		}
		pending(false)
	})
}
