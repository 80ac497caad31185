package mysqlstore

import (
	"testing"
	"time"

	"seckill/shared/seckill"
)

// A claim that was accepted in time becomes an order however late it arrives:
// the window was asked where the claim was decided, and is not asked again.
// The time to pay runs from the writing.
func TestClaimsOfAClosedSaleAreHonoured(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		claims := claimsOf(sale, 5)
		sale.ClosesAt = sale.OpensAt.Add(time.Second) // a minute ago
		sale, err := e.PutSale(e.Context(), sale)
		if err != nil {
			e.Fatal(err)
		}
		for _, p := range e.place(claims...) {
			if outcome(p) != "unpaid" || p.Order.PayBy.Sub(p.Order.CreatedAt) != sale.PayWindow {
				e.Errorf("placed %+v", p)
			}
		}
		e.pays(paymentOf(claims[0], "r"), seckill.PayApplied, seckill.OrderPaid)
		e.lawsHold(sale, 5)
	})
}
