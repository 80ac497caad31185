package mysqlstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"seckill/shared/seckill"
)

// paymentOf is the right payment for a claim's order.
func paymentOf(c seckill.AcceptedClaim, reference string) seckill.Payment {
	return seckill.Payment{
		Callback: "msg-" + reference, Order: c.Claim, Provider: "simulated", Reference: reference,
		AmountMinor: c.AmountMinor(), Currency: c.Currency,
	}
}

// pays applies a payment and fails unless it does what is wanted.
func (e env) pays(p seckill.Payment, want seckill.PayResult, status seckill.OrderStatus) {
	e.Helper()
	order, result, err := e.Pay(e.Context(), p)
	if err != nil || result != want || order.Status != status || order.ID != p.Order {
		e.Errorf("%+v: %s, order %s, %v; want %s, %s", p, result, order.Status, err, want, status)
	}
}

func TestOnePaymentFromManyCallbacks(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		e.place(c)
		var seen tally
		together(min(e.racers, 20), func(i int) {
			p := paymentOf(c, "ref-1")
			p.Callback = fmt.Sprint("msg-", i/2) // each comes twice
			order, result, err := e.Pay(e.Context(), p)
			if err != nil || order.Status != seckill.OrderPaid || order.PaidAt.IsZero() {
				e.Errorf("%+v, %v", order, err)
			}
			seen.add(result)
		})
		seen.is(e, map[string]int{"applied": 1, "duplicate": min(e.racers, 20) - 1})
		e.lawsHold(sale, 9)
		announced := 0
		rows, err := e.Outbox(e.Context(), 0, 100, 0)
		if err != nil {
			e.Fatal(err)
		}
		for _, row := range rows {
			for _, a := range row.Announce {
				if a.Type == seckill.EventOrderPaid {
					announced++
				}
			}
		}
		if announced != 1 {
			e.Errorf("announced %d times", announced)
		}
	})
}

func TestMoneyThatCannotPayIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		paid, cancelled, due, expired := claimOf(sale, "a", 1), claimOf(sale, "b", 1), claimOf(sale, "c", 1), claimOf(sale, "d", 1)
		e.place(expired)
		e.makeDue(sale)
		if _, n, err := e.ExpireDue(e.Context(), 10); err != nil || n != 1 {
			e.Fatal(n, err)
		}
		e.place(due)
		e.makeDueUnpaid(sale)
		e.place(paid, cancelled)
		if _, _, err := e.Cancel(e.Context(), cancelled.Claim, "b"); err != nil {
			e.Fatal(err)
		}
		e.pays(paymentOf(paid, "r1"), seckill.PayApplied, seckill.OrderPaid)
		e.pays(paymentOf(paid, "r2"), seckill.PayRefundDue, seckill.OrderPaid)
		e.pays(paymentOf(cancelled, "r3"), seckill.PayRefundDue, seckill.OrderCancelled)
		e.pays(paymentOf(due, "r4"), seckill.PayRefundDue, seckill.OrderExpired)
		e.pays(paymentOf(expired, "r5"), seckill.PayRefundDue, seckill.OrderExpired)
		again := paymentOf(cancelled, "r3")
		again.Callback = "sent again"
		e.pays(again, seckill.PayDuplicate, seckill.OrderCancelled)
		e.status(due.Claim, seckill.OrderUnpaid)
		e.lawsHold(sale, 8)
		if n := e.count(`SELECT COUNT(*) FROM payments WHERE result = 'refund_due'`); n != 4 {
			e.Errorf("%d payments to refund, want 4", n)
		}
	})
}

func TestWrongMoneyChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c, other := claimOf(sale, "a", 1), claimOf(sale, "b", 1)
		e.place(c, other)
		for i, change := range []func(*seckill.Payment){
			func(p *seckill.Payment) { p.AmountMinor = 1 },
			func(p *seckill.Payment) { p.AmountMinor = 990000 },
			func(p *seckill.Payment) { p.AmountMinor = -9900 },
			func(p *seckill.Payment) { p.Currency = "USD" },
			func(p *seckill.Payment) { p.Currency = "cny" },
			func(p *seckill.Payment) { p.Currency = "" },
		} {
			p := paymentOf(c, fmt.Sprint("r", i))
			change(&p)
			e.pays(p, seckill.PayMismatch, seckill.OrderUnpaid)
			e.pays(p, seckill.PayDuplicate, seckill.OrderUnpaid)
		}
		e.pays(paymentOf(other, "theirs"), seckill.PayApplied, seckill.OrderPaid)
		stolen := paymentOf(c, "theirs")
		stolen.Callback = "stolen"
		e.pays(stolen, seckill.PayMismatch, seckill.OrderUnpaid)
		e.pays(paymentOf(c, "mine"), seckill.PayApplied, seckill.OrderPaid)
		if n := e.count(`SELECT COUNT(*) FROM payments WHERE result = 'mismatch'`); n != 7 {
			e.Errorf("%d mismatches recorded, want 7", n)
		}
		e.lawsHold(sale, 8)
	})
}

func TestPaymentBeforeItsOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "a", 1)
		if _, _, err := e.Pay(e.Context(), paymentOf(c, "r")); !errors.Is(err, seckill.ErrPending) {
			e.Errorf("early: %v", err)
		}
		if n := e.count(`SELECT COUNT(*) FROM payments`); n != 0 {
			e.Errorf("%d payments recorded", n)
		}
		e.place(c)
		e.pays(paymentOf(c, "r"), seckill.PayApplied, seckill.OrderPaid)
	})
}

func TestCallbackIdOfAnotherPayment(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c, other := claimOf(sale, "a", 1), claimOf(sale, "b", 1)
		e.place(c, other)
		e.pays(paymentOf(c, "r"), seckill.PayApplied, seckill.OrderPaid)
		reused := paymentOf(other, "r2")
		reused.Callback = "msg-r"
		if _, _, err := e.Pay(e.Context(), reused); !errors.Is(err, seckill.ErrKeyReused) {
			e.Errorf("reused: %v", err)
		}
		e.status(other.Claim, seckill.OrderUnpaid)
		long := paymentOf(other, strings.Repeat("x", 300))
		long.Callback = "long"
		if _, _, err := e.Pay(e.Context(), long); !errors.Is(err, seckill.ErrInvalid) {
			e.Errorf("long reference: %v", err)
		}
		e.status(other.Claim, seckill.OrderUnpaid)
		e.lawsHold(sale, 8)
	})
}
