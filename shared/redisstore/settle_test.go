package redisstore_test

import (
	"testing"

	"seckill/shared/seckill"
)

func TestSettleOrderedThenRestockOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 2, 1)
		d := w.claim(t, sale.ID, request("b", 1))
		for i, want := range []seckill.Settled{seckill.SettledDone, seckill.SettledSame} {
			if got := w.settle(t, sale.ID, ordered(*d.Accepted)); got != want {
				t.Fatalf("settle %d: %s, want %s", i, got, want)
			}
			w.wantNumbers(t, sale, 1, 1, 0)
		}
		c, err := w.ClaimOf(t.Context(), sale.ID, d.Claim.ID)
		must(t, err)
		if c.Status != seckill.ClaimOrdered || !c.PayBy.Equal(ordered(*d.Accepted).PayBy) {
			t.Fatalf("claim %+v", c)
		}
		for i, want := range []seckill.Settled{seckill.SettledDone, seckill.SettledSame} {
			if got := w.restock(t, sale.ID, c); got != want {
				t.Fatalf("restock %d: %s, want %s", i, got, want)
			}
			w.wantNumbers(t, sale, 2, 0, 0)
		}
		if got := w.settle(t, sale.ID, ordered(*d.Accepted)); got != seckill.SettledSame {
			t.Fatalf("late settle: %s", got)
		}
		w.wantNumbers(t, sale, 2, 0, 0)
		w.forgetRate(t, sale.ID, "b")
		wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeReserved)
	})
}

func TestSettleRejectedGivesUnitsBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 3, 3)
		d := w.claim(t, sale.ID, request("b", 2))
		s := ordered(*d.Accepted)
		s.Status, s.Reason = seckill.ClaimRejected, seckill.ReasonSoldOut
		for range 2 {
			w.settle(t, sale.ID, s)
			w.wantNumbers(t, sale, 3, 0, 0)
		}
		c, err := w.ClaimOf(t.Context(), sale.ID, d.Claim.ID)
		must(t, err)
		if c.Status != seckill.ClaimRejected || c.Reason != seckill.ReasonSoldOut {
			t.Fatalf("claim %+v", c)
		}
		unsettled, _, err := w.Unsettled(t.Context(), sale.ID, "", 0, 10)
		must(t, err)
		if len(unsettled) != 0 {
			t.Fatalf("the log must have ended: %+v", unsettled)
		}
	})
}

func TestRestockOfReservedClaim(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 1, 1)
		d := w.claim(t, sale.ID, request("b", 1))
		if got := w.restock(t, sale.ID, d.Claim); got != seckill.SettledDone {
			t.Fatalf("restock: %s", got)
		}
		w.wantNumbers(t, sale, 1, 0, 0)
	})
}

// Redis came back with older data: it does not know a claim that MySQL knows.
func TestSettleAdoptsALostClaim(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 2, 1)
		lost := seckill.Settlement{Claim: newID(), Buyer: "lost", Quantity: 1, Status: seckill.ClaimOrdered}
		first := w.claim(t, sale.ID, request("a", 1))
		wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeReserved)
		for i, want := range []seckill.Settled{seckill.SettledAdopted, seckill.SettledSame} {
			if got := w.settle(t, sale.ID, lost); got != want {
				t.Fatalf("settle %d: %s, want %s", i, got, want)
			}
		}
		w.wantNumbers(t, sale, 0, 3, 2) // one unit in debt, never below zero
		wantOutcome(t, w.claim(t, sale.ID, request("lost", 1)), seckill.OutcomeHeld)
		w.restock(t, sale.ID, first.Claim)
		w.wantNumbers(t, sale, 0, 2, 1) // paid the debt
		w.restock(t, sale.ID, seckill.Claim{ID: lost.Claim, Buyer: "lost", Quantity: 1})
		w.wantNumbers(t, sale, 1, 1, 1)
	})
}

func TestRestockBeforeSettleOfALostClaim(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 2, 1)
		c := seckill.Claim{ID: newID(), Buyer: "b", Quantity: 1}
		if got := w.restock(t, sale.ID, c); got != seckill.SettledAdopted {
			t.Fatalf("restock: %s", got)
		}
		late := seckill.Settlement{Claim: c.ID, Buyer: "b", Quantity: 1, Status: seckill.ClaimOrdered}
		if got := w.settle(t, sale.ID, late); got != seckill.SettledSame {
			t.Fatalf("late settle: %s", got)
		}
		w.wantNumbers(t, sale, 2, 0, 0)
	})
}

// A claim of Redis' own epoch that Redis does not know: it lost data. One of
// an older epoch is only adopted.
func TestALostClaimOfThisEpochFences(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 3, 1)
		s := seckill.Settlement{Claim: newID(), Buyer: "b", Quantity: 1, Status: seckill.ClaimOrdered, Epoch: 7}
		w.settle(t, sale.ID, s)
		wantOutcome(t, w.claim(t, sale.ID, request("c", 1)), seckill.OutcomeReserved)
		s.Claim, s.Epoch = newID(), 1
		w.settle(t, sale.ID, s)
		wantOutcome(t, w.claim(t, sale.ID, request("d", 1)), seckill.OutcomeFenced)
	})
}

func TestWhatIsNotHeldIsGone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := saleFor(t, 3, 1)
		if got := w.settle(t, sale.ID, seckill.Settlement{Claim: newID(), Buyer: "b", Quantity: 1, Status: seckill.ClaimOrdered}); got != seckill.SettledGone {
			t.Errorf("settle: %s", got)
		}
		if got := w.restock(t, sale.ID, seckill.Claim{ID: newID(), Buyer: "b", Quantity: 1}); got != seckill.SettledGone {
			t.Errorf("restock: %s", got)
		}
		if n, err := w.raw.Exists(t.Context(), w.key(sale.ID, "sale"), w.key(sale.ID, "stock"), w.key(sale.ID, "claims")).Result(); err != nil || n != 0 {
			t.Errorf("%d keys were made, %v", n, err)
		}
	})
}
