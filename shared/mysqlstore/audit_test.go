package mysqlstore

import (
	"errors"
	"maps"
	"testing"

	"seckill/shared/seckill"
)

func TestAuditSumsUnits(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 4)
		paid := claimOf(sale, "b", 2)
		e.place(claimOf(sale, "a", 3), paid, claimOf(sale, "a", 4), claimOf(e.sale(1, 1), "a", 1))
		e.pays(paymentOf(paid, "r"), seckill.PayApplied, seckill.OrderPaid)
		units, err := e.UnitsByStatus(e.Context(), sale.ID)
		want := map[seckill.OrderStatus]int64{seckill.OrderUnpaid: 3, seckill.OrderPaid: 2, seckill.OrderRejected: 4}
		if err != nil || !maps.Equal(units, want) {
			e.Errorf("units %v, %v, want %v", units, err, want)
		}
		if _, err := e.OverLimit(e.Context(), "unheard-of"); !errors.Is(err, seckill.ErrNotFound) {
			e.Errorf("no sale: %v", err)
		}
	})
}

// The audit goes by the orders, not by what is to keep them within the limit.
func TestAuditFindsBuyersOverTheLimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 2)
		e.place(claimOf(sale, "a", 2), claimOf(sale, "b", 1), claimOf(sale, "c", 2))
		e.exec(`UPDATE orders SET buyer = 'a' WHERE buyer = 'b' AND sale = ?`, sale.ID)
		if n, err := e.OverLimit(e.Context(), sale.ID); err != nil || n != 1 {
			e.Errorf("%d over the limit, %v", n, err)
		}
	})
}
