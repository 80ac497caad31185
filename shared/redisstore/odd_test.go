package redisstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// Ids that are the same number to a double are not the same buyer, nor the
// same sale.
func TestBigNumbersStayApart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		for _, id := range []string{"1152921504606846976", "1152921504606846977"} {
			sale := saleFor(t, 5, 1)
			sale.ID = id + "-" + sale.ID
			w.build(t, sale, 5, nil)
			for _, buyer := range []string{"9007199254740992", "9007199254740993"} {
				d := w.claim(t, sale.ID, request(buyer, 1))
				wantOutcome(t, d, seckill.OutcomeReserved)
				if d.Claim.Buyer != buyer || d.Accepted.Buyer != buyer || d.Accepted.Sale != sale.ID {
					t.Errorf("%+v for %s in %s", d, buyer, sale.ID)
				}
			}
			claimants, _, err := w.Claimants(t.Context(), sale.ID)
			if err != nil || len(claimants) != 2 {
				t.Errorf("claimants %v, %v", claimants, err)
			}
			w.wantNumbers(t, sale, 3, 2, 2)
		}
	})
}

// An eager buyer burns no stock: with 10 units 10 buyers win.
func TestEagerBuyerTakesOneUnit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 10, 1)
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				_, err := w.Claim(t.Context(), sale.ID, []seckill.ClaimRequest{request("eager", 1)})
				if err != nil && !errors.Is(err, seckill.ErrUnavailable) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for _, buyer := range buyers(9) {
			wantOutcome(t, w.claim(t, sale.ID, request(buyer, 1)), seckill.OutcomeReserved)
		}
		wantOutcome(t, w.claim(t, sale.ID, request("last", 1)), seckill.OutcomeSoldOut)
		w.wantNumbers(t, sale, 0, 10, 10)
	})
}

// A request that asks for more than there is takes nothing, not for a moment:
// one that fits is never refused beside it.
func TestTooBigRequestBlocksNobody(t *testing.T) {
	t.Parallel()
	w := openAt(t, testenv.Redis(t))
	for i := range 50 {
		sale := saleFor(t, 3, 5)
		sale.ID += fmt.Sprint("-", i)
		w.build(t, sale, 3, nil)
		gate := make(chan struct{})
		var group sync.WaitGroup
		for buyer, c := range map[string]struct {
			units int64
			want  seckill.Outcome
		}{"big": {5, seckill.OutcomeSoldOut}, "fits": {3, seckill.OutcomeReserved}} {
			group.Go(func() {
				<-gate
				d, err := w.Claim(t.Context(), sale.ID, []seckill.ClaimRequest{request(buyer, c.units)})
				if err != nil || d[0].Outcome != c.want {
					t.Errorf("%s: %+v, %v", buyer, d, err)
				}
			})
		}
		close(gate)
		group.Wait()
		w.wantNumbers(t, sale, 0, 3, 3)
	}
}

// However fast a buyer asks, two attempts that count are a whole gap apart:
// there is no window at whose edge twice as many pass.
func TestAttemptsAreAGapApart(t *testing.T) {
	t.Parallel()
	w := openAt(t, testenv.Redis(t))
	sale := w.opened(t, 5, 5)
	start, counted := time.Now(), 0
	for counted < 3 { // the first at once, and two more
		d := w.claim(t, sale.ID, request("eager", 1))
		rate := d.Outcome == seckill.OutcomeRate && d.RetryIn > 0 && d.RetryIn <= time.Second
		if d.Outcome == seckill.OutcomeReserved {
			counted++
		} else if !rate {
			t.Fatalf("%+v", d)
		}
	}
	// A slow machine makes this longer, never shorter.
	if took := time.Since(start); took < 2*time.Second-10*time.Millisecond {
		t.Errorf("three attempts counted within %s", took)
	}
	w.wantNumbers(t, sale, 2, 3, 3)
}

// Keys of a kind or size that no sale has are not believed, not written to,
// and no other sale's trouble.
func TestKeysOfAnotherKind(t *testing.T) {
	t.Parallel()
	spoil := map[string]func(*testing.T, world, string){
		"buyers are text": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "buyers"), "x", 0).Err())
		},
		"claims are a set": func(t *testing.T, w world, s string) {
			must(t, w.raw.Del(t.Context(), w.key(s, "claims")).Err())
			must(t, w.raw.SAdd(t.Context(), w.key(s, "claims"), "x").Err())
		},
		"stock is huge": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "stock"), "9223372036854775806", 0).Err())
		},
		"stock is empty": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "stock"), "", 0).Err())
		},
		"stock has a space": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "stock"), "4 ", 0).Err())
		},
		"stock expires": func(t *testing.T, w world, s string) {
			must(t, w.raw.PExpire(t.Context(), w.key(s, "stock"), time.Millisecond).Err())
			testenv.Eventually(t, 10*time.Second, func() error {
				if n, err := w.raw.Exists(t.Context(), w.key(s, "stock")).Result(); err != nil || n != 0 {
					return fmt.Errorf("not gone yet: %w", err)
				}
				return nil
			})
		},
		"opened is huge, too": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "stock"), "9223372036854775806", 0).Err())
			must(t, w.raw.HSet(t.Context(), w.key(s, "sale"), "opened", "9223372036854775807").Err())
		},
	}
	w := openAt(t, testenv.Redis(t))
	for name, f := range spoil {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sale, other := w.opened(t, 5, 1), w.opened(t, 5, 1)
			d := w.claim(t, sale.ID, request("a", 1))
			wantOutcome(t, d, seckill.OutcomeReserved)
			f(t, w, sale.ID)
			before := w.dump(t, sale.ID)
			wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeCorrupt)
			for range 2 {
				wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeFenced)
			}
			if after := w.dump(t, sale.ID); after != before {
				t.Errorf("spoiled data was written to:\n%q\n%q", before, after)
			}
			wantOutcome(t, w.claim(t, other.ID, request("b", 1)), seckill.OutcomeReserved)
			w.wantNumbers(t, other, 4, 1, 1)
		})
	}
	t.Run("the rate is a list", func(t *testing.T) {
		t.Parallel()
		sale := w.opened(t, 5, 1)
		must(t, w.raw.LPush(t.Context(), w.key(sale.ID, "rate:a"), "x").Err())
		wantOutcome(t, w.claim(t, sale.ID, request("a", 1)), seckill.OutcomeReserved)
		w.wantNumbers(t, sale, 4, 1, 1)
	})
}

// A window that is moved while the sale is in Redis counts at once, for
// everybody, and touches nothing else.
func TestMovedWindowCountsAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 5, 1)
		open, hour := sale.OpensAt, time.Hour
		for i, c := range []struct {
			opens, closes time.Time
			want          seckill.Outcome
		}{
			{open.Add(2 * hour), sale.ClosesAt.Add(2 * hour), seckill.OutcomeNotOpen},
			{open, sale.ClosesAt, seckill.OutcomeReserved},
			{open.Add(-hour), open.Add(-time.Minute), seckill.OutcomeClosed},
		} {
			moved := sale
			moved.Version, moved.OpensAt, moved.ClosesAt = int64(i+2), c.opens, c.closes
			must(t, w.Amend(t.Context(), moved))
			d := w.claim(t, sale.ID, request(fmt.Sprint("b", i), 1))
			wantOutcome(t, d, c.want)
			if c.want == seckill.OutcomeNotOpen && !d.OpensAt.Equal(c.opens.Truncate(time.Millisecond)) {
				t.Errorf("opens at %s, want %s", d.OpensAt, c.opens)
			}
		}
		w.wantNumbers(t, sale, 4, 1, 1)
	})
}
