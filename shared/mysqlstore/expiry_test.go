package mysqlstore

import (
	"sync/atomic"
	"testing"

	"seckill/shared/seckill"
)

func TestExpiryRunsAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		n := e.racers
		sale, other, later := e.sale(int64(n), 1), e.sale(int64(n), 4), e.sale(5, 1)
		e.place(claimsOf(sale, n)...)
		e.place(claimOf(other, "a", 1), claimOf(other, "a", 2), claimOf(other, "b", 3))
		e.makeDue(sale)
		e.makeDue(other)
		kept := claimsOf(later, 5)
		e.place(kept...)
		var expired atomic.Int64
		together(5, func(int) {
			for {
				rows, count, err := e.ExpireDue(e.Context(), 7)
				if err != nil {
					e.Error(err)
					return
				}
				returns := 0
				for _, row := range rows {
					returns += len(row.Returns)
					if row.ID == 0 || len(row.Announce) != len(row.Returns) {
						e.Errorf("row %+v", row)
					}
				}
				if returns != count || count > 7 {
					e.Errorf("%d orders, %d returns", count, returns)
				}
				expired.Add(int64(count))
				if count == 0 {
					return
				}
			}
		})
		if got := expired.Load(); got != int64(n+3) {
			e.Errorf("expired %d orders, want %d", got, n+3)
		}
		if back := e.returned(); back != int64(n+3) {
			e.Errorf("%d claims return units", back)
		}
		e.lawsHold(sale, int64(n))
		e.lawsHold(other, int64(n))
		for _, c := range kept {
			e.status(c.Claim, seckill.OrderUnpaid)
		}
		e.lawsHold(later, 0)
	})
}

func TestExpiryTakesTheOldestAndNoPaidOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		claims := claimsOf(sale, 3)
		e.place(claims...)
		e.pays(paymentOf(claims[0], "r"), seckill.PayApplied, seckill.OrderPaid)
		e.makeDue(sale)
		e.exec(`UPDATE orders SET pay_by = '2020-01-01 00:00:00' WHERE id = ?`, claims[2].Claim)
		rows, n, err := e.ExpireDue(e.Context(), 1)
		if err != nil || n != 1 || rows[0].Returns[0].Claim != claims[2].Claim {
			e.Errorf("expired %+v, %d, %v", rows, n, err)
		}
		e.status(claims[0].Claim, seckill.OrderPaid)
		e.status(claims[1].Claim, seckill.OrderUnpaid)
		e.status(claims[2].Claim, seckill.OrderExpired)
		e.lawsHold(sale, 8)
	})
}

func TestExpiryPassesOverWhatIsBeingPaid(t *testing.T) {
	t.Parallel()
	e := onMariaDB(t)
	sale := e.sale(10, 1)
	claims := claimsOf(sale, 2)
	e.place(claims...)
	e.makeDue(sale)
	tx, err := e.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // ends the lock
	if _, err := tx.ExecContext(t.Context(), `SELECT id FROM orders WHERE id = ? FOR UPDATE`, claims[0].Claim); err != nil {
		t.Fatal(err)
	}
	if _, n, err := e.ExpireDue(t.Context(), 10); err != nil || n != 1 {
		t.Errorf("expired %d, %v", n, err)
	}
	e.status(claims[0].Claim, seckill.OrderUnpaid)
	e.status(claims[1].Claim, seckill.OrderExpired)
	e.lawsHold(sale, 9)
}
