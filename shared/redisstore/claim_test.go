package redisstore_test

import (
	"testing"
	"time"

	"seckill/shared/seckill"
)

func TestClaimReservesOnceAndAnswersAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 3, 1)
		r := request("Alice", 1)
		first := w.claim(t, sale.ID, r)
		wantOutcome(t, first, seckill.OutcomeReserved)
		a := first.Accepted
		if a == nil || a.PriceMinor != 9900 || a.Currency != "CNY" || a.SKU != "sku-1" || a.Seq != 1 || a.Epoch != 1 || a.PayWindowMS != 900000 {
			t.Fatalf("accepted %+v", a)
		}
		must(t, a.Validate())
		second := w.claim(t, sale.ID, r)
		wantOutcome(t, second, seckill.OutcomeReserved)
		if second.Claim != first.Claim || second.Accepted == nil || *second.Accepted != *a {
			t.Fatalf("a repeat must answer, and publish, the same claim: %+v", second)
		}
		w.wantNumbers(t, sale, 2, 1, 1)
		unsettled, next, err := w.Unsettled(t.Context(), sale.ID, "", 0, 10)
		must(t, err)
		if len(unsettled) != 1 || unsettled[0] != *a || next != "" {
			t.Fatalf("claim log %+v, want %+v", unsettled, a)
		}
	})
}

func TestClaimRefusals(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 3, 2)
		alice := w.claim(t, sale.ID, request("alice", 1))
		wantOutcome(t, alice, seckill.OutcomeReserved)
		wantOutcome(t, w.claim(t, sale.ID, request("alice", 1)), seckill.OutcomeRate)
		w.forgetRate(t, sale.ID, "alice")
		wantOutcome(t, w.claim(t, sale.ID, request("alice", 2)), seckill.OutcomeLimit)
		wantOutcome(t, w.claim(t, sale.ID, request("alice", 1)), seckill.OutcomeReserved)
		held := w.claim(t, sale.ID, request("alice", 1))
		wantOutcome(t, held, seckill.OutcomeHeld)
		if held.Claim.Buyer != "alice" || held.Claim.Status != seckill.ClaimReserved {
			t.Fatalf("held %+v", held.Claim)
		}
		wantOutcome(t, w.claim(t, sale.ID, request("Alice", 2)), seckill.OutcomeSoldOut)
		wantOutcome(t, w.claim(t, sale.ID, request("bob", 1)), seckill.OutcomeReserved)
		wantOutcome(t, w.claim(t, sale.ID, request("carol", 1)), seckill.OutcomeSoldOut)
		stolen := seckill.ClaimRequest{ID: alice.Claim.ID, Buyer: "bob", Quantity: 1}
		wantOutcome(t, w.claim(t, sale.ID, stolen), seckill.OutcomeReused)
		w.wantNumbers(t, sale, 0, 3, 3)
	})
}

func TestClaimFollowsTheWindow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		now := time.Now()
		for want, change := range map[seckill.Outcome]func(*seckill.Sale){
			seckill.OutcomeNotOpen: func(s *seckill.Sale) { s.OpensAt = now.Add(time.Minute).Truncate(time.Millisecond) },
			seckill.OutcomeClosed:  func(s *seckill.Sale) { s.ClosesAt = now.Add(-time.Second) },
			seckill.OutcomePaused:  func(s *seckill.Sale) { s.Paused = true },
		} {
			sale := saleFor(t, 3, 1)
			sale.ID += "-" + map[seckill.Outcome]string{seckill.OutcomeNotOpen: "n", seckill.OutcomeClosed: "c", seckill.OutcomePaused: "p"}[want]
			change(&sale)
			w.build(t, sale, 3, nil)
			d := w.claim(t, sale.ID, request("b", 1))
			wantOutcome(t, d, want)
			if want == seckill.OutcomeNotOpen && !d.OpensAt.Equal(sale.OpensAt) {
				t.Fatalf("opens at %s, want %s", d.OpensAt, sale.OpensAt)
			}
			w.wantNumbers(t, sale, 3, 0, 0)
		}
	})
}

func TestClaimBatchDecidesInOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 4, 5)
		again := request("a", 1)
		batch := []seckill.ClaimRequest{again, request("big", 5), again, request("c", 3), request("d", 1)}
		got, err := w.Claim(t.Context(), sale.ID, batch)
		must(t, err)
		want := []seckill.Outcome{seckill.OutcomeReserved, seckill.OutcomeSoldOut, seckill.OutcomeReserved, seckill.OutcomeReserved, seckill.OutcomeSoldOut}
		for i := range want {
			wantOutcome(t, got[i], want[i])
		}
		if got[2].Accepted != nil || got[3].Accepted.Seq != 2 {
			t.Fatalf("a repeat in the batch counts once: %+v", got)
		}
		w.wantNumbers(t, sale, 0, 4, 4)
	})
}

func TestIdempotencyKeyBelongsToItsFirstRequest(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		one, two := w.opened(t, 3, 2), saleFor(t, 3, 2)
		two.ID += "-two"
		w.build(t, two, 3, nil)
		buyer := "b-" + one.ID
		r := request(buyer, 1)
		r.Key = "k"
		wantOutcome(t, w.claim(t, one.ID, r), seckill.OutcomeReserved)
		other := request(buyer, 1)
		other.Key = "k"
		wantOutcome(t, w.claim(t, two.ID, other), seckill.OutcomeReused)
		other.Quantity = 2
		wantOutcome(t, w.claim(t, one.ID, other), seckill.OutcomeReused)
		stranger := request("c-"+one.ID, 1)
		stranger.Key = "k"
		wantOutcome(t, w.claim(t, two.ID, stranger), seckill.OutcomeReserved)
		w.wantNumbers(t, one, 2, 1, 1)
		w.wantNumbers(t, two, 2, 1, 1)
	})
}

// A crowd that is refused leaves no keys behind for long.
func TestOnlyAcceptedKeysAreKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 1, 1)
		accepted, refused := w.keyTTL(t, sale.ID, "a"), w.keyTTL(t, sale.ID, "b")
		if accepted < 23*time.Hour || refused > 2*time.Minute {
			t.Errorf("the key of an accepted claim is kept for %s, of a refused one for %s", accepted, refused)
		}
	})
}

func TestUnknownAndFencedSalesAreNotSoldOut(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := saleFor(t, 3, 1)
		wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeNotLoaded)
		must(t, w.Fence(t.Context(), sale.ID, 0))
		must(t, w.NoteDrain(t.Context(), sale.ID, 0, 7))
		must(t, w.NoteDrain(t.Context(), sale.ID, 0, 9))
		wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeFenced)
		h, err := w.Head(t.Context(), sale.ID)
		must(t, err)
		if h.Fence != seckill.FenceDrain || h.FenceSeq != 7 || !h.FenceNoted {
			t.Fatalf("head %+v", h)
		}
	})
}
