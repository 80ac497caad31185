package redisstore_test

import (
	"testing"
	"time"

	"seckill/shared/seckill"
)

// Without the ticket that a sale asks for nothing is sold, nothing changes and
// no attempt is counted; whoever holds a claim hears of it all the same.
func TestSaleThatAsksForATicket(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := saleFor(t, 1, 1)
		sale.Ticket = seckill.TicketSigned
		w.build(t, sale, 1, nil)
		good := ticketFor(sale)
		over, kind, epoch := good, good, good
		over.Until, kind.Kind, epoch.Epoch = time.Now().Add(-time.Second), seckill.TicketWork, good.Epoch+1
		r := request("a", 1)
		before := w.dump(t, sale.ID)
		for _, c := range []struct {
			ticket seckill.Ticket
			want   seckill.Outcome
		}{
			{seckill.Ticket{}, seckill.OutcomeNoTicket},
			{over, seckill.OutcomeOldTicket},
			{kind, seckill.OutcomeOldTicket},
			{epoch, seckill.OutcomeOldTicket},
		} {
			r.Ticket = c.ticket
			wantOutcome(t, w.claim(t, sale.ID, r), c.want)
		}
		if after := w.dump(t, sale.ID); after != before {
			t.Errorf("a refusal changed the sale from %q to %q", before, after)
		}
		r.Ticket = good
		wantOutcome(t, w.claim(t, sale.ID, r), seckill.OutcomeReserved)
		r.Ticket = seckill.Ticket{}
		wantOutcome(t, w.claim(t, sale.ID, r), seckill.OutcomeReserved)
		wantOutcome(t, w.claim(t, sale.ID, request("a", 1)), seckill.OutcomeHeld)
		// Sold out now, and still not told without a ticket.
		wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeNoTicket)
		w.wantNumbers(t, sale, 0, 1, 1)
	})
}

// The kind comes into Redis with each change of the sale.
func TestTicketKindIsAmended(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 2, 1)
		wantOutcome(t, w.claim(t, sale.ID, request("a", 1)), seckill.OutcomeReserved)
		sale.Ticket, sale.Version = seckill.TicketWork, 2
		must(t, w.Amend(t.Context(), sale))
		wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeNoTicket)
		peek, err := w.Peek(t.Context(), sale.ID)
		must(t, err)
		head, err := w.Head(t.Context(), sale.ID)
		must(t, err)
		if peek.Ticket != seckill.TicketWork || head.Sale.Ticket != seckill.TicketWork {
			t.Errorf("amended to %q and %q", peek.Ticket, head.Sale.Ticket)
		}
		r := request("b", 1)
		r.Ticket = ticketFor(sale)
		wantOutcome(t, w.claim(t, sale.ID, r), seckill.OutcomeReserved)
	})
}
