package mysqlstore

import (
	"errors"
	"slices"
	"testing"
	"time"

	"seckill/shared/seckill"
)

// refundsOf returns an order's refunds.
func (e env) refundsOf(order string) []seckill.Refund {
	e.Helper()
	refunds, err := e.RefundsOf(e.Context(), order)
	if err != nil {
		e.Fatal(err)
	}
	return refunds
}

// wantMoney fails unless the sale's only currency adds up to this.
func (e env) wantMoney(sale seckill.Sale, want seckill.Money) {
	e.Helper()
	got, err := e.MoneyOf(e.Context(), sale.ID)
	if err != nil || !slices.Equal(got, []seckill.Money{want}) || !want.Balanced() {
		e.Errorf("money %+v, %v; want %+v", got, err, want)
	}
}

func TestCancelOfAPaidOrderRefundsOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		for _, limit := range []int64{1, 3} {
			sale := e.sale(10, limit)
			c, kept := claimOf(sale, "a", limit), claimOf(sale, "b", 1)
			e.place(c, kept)
			e.pays(paymentOf(c, "paid-"+c.Claim), seckill.PayApplied, seckill.OrderPaid)
			e.pays(paymentOf(kept, "kept-"+c.Claim), seckill.PayApplied, seckill.OrderPaid)
			var seen tally
			together(min(e.racers, 10), func(int) {
				order, row, err := e.Cancel(e.Context(), c.Claim, "a")
				if err != nil || order.Status != seckill.OrderRefunding {
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
			e.lawsHold(sale, 9)
			refunds := e.refundsOf(c.Claim)
			if len(refunds) != 1 || refunds[0].AmountMinor != c.AmountMinor() || refunds[0].Currency != "CNY" ||
				refunds[0].Reference != "paid-"+c.Claim || refunds[0].Cause != seckill.RefundCancelled {
				e.Fatalf("refunds %+v", refunds)
			}
			e.wantMoney(sale, seckill.Money{Currency: "CNY", Received: c.AmountMinor() + 9900, Due: c.AmountMinor(), Kept: 9900})
			together(min(e.racers, 5), func(int) {
				if err := e.RefundDone(e.Context(), refunds[0].ID); err != nil {
					e.Error(err)
				}
			})
			e.status(c.Claim, seckill.OrderRefunded)
			e.status(kept.Claim, seckill.OrderPaid)
			e.wantMoney(sale, seckill.Money{Currency: "CNY", Received: c.AmountMinor() + 9900, Refunded: c.AmountMinor(), Kept: 9900})
			e.lawsHold(sale, 9)
			if order, row, err := e.Cancel(e.Context(), c.Claim, "a"); err != nil || row.ID != 0 || order.Status != seckill.OrderRefunded {
				e.Errorf("cancelled again: %+v %+v %v", order, row, err)
			}
			if n := e.announced(seckill.EventOrderRefunded, c.Claim); n != 1 {
				e.Errorf("announced %d times", n)
			}
			again := claimOf(sale, "a", limit) // the buyer may hold units again
			if placed := e.place(again); outcome(placed[0]) != "unpaid" {
				e.Errorf("the next claim became %+v", placed[0])
			}
		}
	})
}

// announced counts the events of a kind about an order in the outbox.
func (e env) announced(kind seckill.EventType, order string) (n int) {
	e.Helper()
	rows, err := e.Outbox(e.Context(), 0, 1000, 0)
	if err != nil {
		e.Fatal(err)
	}
	for _, row := range rows {
		for _, a := range row.Announce {
			if a.Type == kind && a.Data.Order == order {
				n++
			}
		}
	}
	return n
}

// Late money goes back whole, once, and the order stays what it was.
func TestLateMoneyIsRefunded(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		paid, cancelled, refunding := claimOf(sale, "a", 1), claimOf(sale, "b", 1), claimOf(sale, "c", 1)
		e.place(paid, cancelled, refunding)
		if _, _, err := e.Cancel(e.Context(), cancelled.Claim, "b"); err != nil {
			e.Fatal(err)
		}
		e.pays(paymentOf(paid, "r1"), seckill.PayApplied, seckill.OrderPaid)
		e.pays(paymentOf(paid, "r2"), seckill.PayRefundDue, seckill.OrderPaid)
		e.pays(paymentOf(cancelled, "r3"), seckill.PayRefundDue, seckill.OrderCancelled)
		again := paymentOf(cancelled, "r3")
		again.Callback = "sent again"
		e.pays(again, seckill.PayDuplicate, seckill.OrderCancelled)
		e.pays(paymentOf(refunding, "r4"), seckill.PayApplied, seckill.OrderPaid)
		if _, _, err := e.Cancel(e.Context(), refunding.Claim, "c"); err != nil {
			e.Fatal(err)
		}
		e.pays(paymentOf(refunding, "r5"), seckill.PayRefundDue, seckill.OrderRefunding)
		due, err := e.RefundsDue(e.Context(), 100)
		if err != nil {
			e.Fatal(err)
		}
		var seen tally
		for _, r := range due {
			seen.add(r.Reference + " " + string(r.Cause))
			if err := e.RefundDone(e.Context(), r.ID); err != nil {
				e.Error(err)
			}
		}
		seen.is(e, map[string]int{"r2 twice": 1, "r3 late": 1, "r4 cancelled": 1, "r5 twice": 1})
		e.status(paid.Claim, seckill.OrderPaid)
		e.status(cancelled.Claim, seckill.OrderCancelled)
		e.status(refunding.Claim, seckill.OrderRefunded)
		e.wantMoney(sale, seckill.Money{Currency: "CNY", Received: 5 * 9900, Refunded: 4 * 9900, Kept: 9900})
		e.lawsHold(sale, 9)
		if due, err := e.RefundsDue(e.Context(), 100); err != nil || len(due) != 0 {
			e.Errorf("due again: %+v, %v", due, err)
		}
	})
}

func TestRefundIsDelayed(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		e.place(c)
		e.pays(paymentOf(c, "r1"), seckill.PayApplied, seckill.OrderPaid)
		if _, _, err := e.Cancel(e.Context(), c.Claim, "a"); err != nil {
			e.Fatal(err)
		}
		for _, tries := range []int64{0, 1, 6, 7, 100} {
			e.exec(`UPDATE refunds SET due_at = created_at, tries = ?`, tries)
			due, err := e.RefundsDue(e.Context(), 10)
			if err != nil || len(due) != 1 || due[0].Tries != tries {
				e.Fatalf("%+v, %v", due, err)
			}
			for range 2 { // two sweeps had asked at once
				if err := e.RefundDelayed(e.Context(), due[0]); err != nil {
					e.Fatal(err)
				}
			}
			if due, err := e.RefundsDue(e.Context(), 10); err != nil || len(due) != 0 {
				e.Errorf("due at once: %+v, %v", due, err)
			}
			wait := min(5*time.Second<<min(tries, 7), refundWaitMax)
			n := e.count(`SELECT COUNT(*) FROM refunds WHERE tries = ? AND due_at > ? AND due_at <= ?`,
				tries+1, ms(time.Now()), ms(time.Now().Add(wait+time.Second)))
			if n != 1 {
				e.Errorf("after %d tries it is not due within %s", tries, wait)
			}
		}
		if n, err := e.RefundsPending(e.Context()); err != nil || n != 1 {
			e.Errorf("%d pending, %v", n, err)
		}
		if err := e.RefundDone(e.Context(), 12345); !errors.Is(err, seckill.ErrNotFound) {
			e.Errorf("unknown: %v", err)
		}
	})
}

// What was recorded as refund_due before there were refunds becomes one.
func TestMigrationRefundsLateMoney(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		e.place(c)
		e.pays(paymentOf(c, "r1"), seckill.PayApplied, seckill.OrderPaid)
		e.pays(paymentOf(c, "r2"), seckill.PayRefundDue, seckill.OrderPaid)
		e.exec(`DROP TABLE refunds`)
		for range 2 {
			e.exec(`DELETE FROM schema_migrations`)
			if err := e.Migrate(e.Context()); err != nil {
				e.Fatal(err)
			}
			refunds := e.refundsOf(c.Claim)
			if len(refunds) != 1 || refunds[0].Reference != "r2" || refunds[0].Cause != seckill.RefundTwice {
				e.Errorf("refunds %+v", refunds)
			}
		}
		e.lawsHold(sale, 9)
	})
}

// The audit notices money that no row explains.
func TestMoneyThatDoesNotAddUp(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		e.place(c)
		e.pays(paymentOf(c, "r1"), seckill.PayApplied, seckill.OrderPaid)
		e.pays(paymentOf(c, "r2"), seckill.PayRefundDue, seckill.OrderPaid)
		e.exec(`DELETE FROM refunds`)
		money, err := e.MoneyOf(e.Context(), sale.ID)
		if err != nil || len(money) != 1 || money[0].Balanced() {
			e.Errorf("money %+v, %v", money, err)
		}
	})
}
