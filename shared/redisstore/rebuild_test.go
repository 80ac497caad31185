package redisstore_test

import (
	"errors"
	"testing"

	"seckill/shared/seckill"
)

func (w world) key(sale, what string) string { return "seckill:{" + sale + "}:" + what }

// Each way to spoil a sale's numbers is noticed before a claim is decided, and
// nothing that was spoiled is written to.
func TestSpoiledSaleIsFencedNotSold(t *testing.T) {
	t.Parallel()
	spoil := map[string]func(*testing.T, world, string){
		"stock-gone": func(t *testing.T, w world, s string) { must(t, w.raw.Del(t.Context(), w.key(s, "stock")).Err()) },
		"stock-decimal": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "stock"), "10.5", 0).Err())
		},
		"stock-text": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "stock"), "1e3", 0).Err())
		},
		"stock-negative": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "stock"), "-3", 0).Err())
		},
		"stock-more": func(t *testing.T, w world, s string) { must(t, w.raw.Incr(t.Context(), w.key(s, "stock")).Err()) },
		"stock-list": func(t *testing.T, w world, s string) {
			must(t, w.raw.Del(t.Context(), w.key(s, "stock")).Err())
			must(t, w.raw.LPush(t.Context(), w.key(s, "stock"), "1").Err())
		},
		"buyers-gone": func(t *testing.T, w world, s string) { must(t, w.raw.Del(t.Context(), w.key(s, "buyers")).Err()) },
		"claims-gone": func(t *testing.T, w world, s string) { must(t, w.raw.Del(t.Context(), w.key(s, "claims")).Err()) },
		"log-gone":    func(t *testing.T, w world, s string) { must(t, w.raw.Del(t.Context(), w.key(s, "log")).Err()) },
		"log-string": func(t *testing.T, w world, s string) {
			must(t, w.raw.Set(t.Context(), w.key(s, "log"), "x", 0).Err())
		},
		"field-gone": func(t *testing.T, w world, s string) {
			must(t, w.raw.HDel(t.Context(), w.key(s, "sale"), "held").Err())
		},
	}
	onEach(t, func(t *testing.T, w world) {
		for name, f := range spoil {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sale := w.opened(t, 5, 1)
				wantOutcome(t, w.claim(t, sale.ID, request("a", 1)), seckill.OutcomeReserved)
				f(t, w, sale.ID)
				before := w.dump(t, sale.ID)
				wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeCorrupt)
				wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeFenced)
				if after := w.dump(t, sale.ID); after != before {
					t.Fatalf("spoiled data was written to:\n%s\n%s", before, after)
				}
				sale.Epoch = 2
				w.build(t, sale, 4, []seckill.Order{{ID: newID(), Buyer: "a", Quantity: 1, Status: seckill.OrderUnpaid}})
				wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeReserved)
				wantOutcome(t, w.claim(t, sale.ID, request("a", 1)), seckill.OutcomeHeld)
				w.wantNumbers(t, sale, 3, 2, 1)
			})
		}
	})
}

// dump shows the keys of a sale except its head.
func (w world) dump(t *testing.T, sale string) string {
	t.Helper()
	out := ""
	for _, k := range []string{"stock", "buyers", "claims", "log"} {
		data, err := w.raw.Dump(t.Context(), w.key(sale, k)).Result()
		if err != nil && data == "" {
			data = "none"
		}
		out += k + "=" + data + "\n"
	}
	return out
}

func TestBuildIsFencedByItsEpoch(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		ctx := t.Context()
		sale := w.opened(t, 5, 1)
		if err := w.Begin(ctx, sale); !errors.Is(err, seckill.ErrSuperseded) {
			t.Fatalf("an open epoch must not begin again: %v", err)
		}
		older, newer := sale, sale
		older.Epoch, newer.Epoch = 2, 3
		must(t, w.Begin(ctx, older))
		must(t, w.Begin(ctx, newer))
		for name, err := range map[string]error{
			"begin": w.Begin(ctx, older), "load": w.Load(ctx, older, []seckill.Order{{ID: newID(), Buyer: "b", Quantity: 1, Status: seckill.OrderPaid}}),
			"lift": w.Lift(ctx, older, 5, 5, 0),
		} {
			if !errors.Is(err, seckill.ErrSuperseded) {
				t.Fatalf("%s of an older epoch: %v", name, err)
			}
		}
		if err := w.Lift(ctx, newer, 4, 5, 0); err == nil {
			t.Fatal("numbers that do not add up must not open")
		}
		must(t, w.Lift(ctx, newer, 5, 5, 0))
		w.wantNumbers(t, sale, 5, 0, 0)
	})
}

func TestNothingIsSettledWhileRebuilding(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 5, 1)
		d := w.claim(t, sale.ID, request("a", 1))
		sale.Epoch = 2
		must(t, w.Begin(t.Context(), sale))
		if got := w.settle(t, sale.ID, ordered(*d.Accepted)); got != seckill.SettledFenced {
			t.Fatalf("settle: %s", got)
		}
		if got := w.restock(t, sale.ID, d.Claim); got != seckill.SettledFenced {
			t.Fatalf("restock: %s", got)
		}
		must(t, w.Lift(t.Context(), sale, 5, 5, 1))
		if got := w.settle(t, sale.ID, ordered(*d.Accepted)); got != seckill.SettledAdopted {
			t.Fatalf("settle after: %s", got)
		}
		w.wantNumbers(t, sale, 4, 1, 0)
	})
}

func TestAmendKeepsWhatIsHeld(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		ctx := t.Context()
		sale := w.opened(t, 5, 1)
		d := w.claim(t, sale.ID, request("a", 1))
		more := sale
		more.Version, more.Units, more.PriceMinor = 2, 8, 12900
		must(t, w.Amend(ctx, more))
		must(t, w.Amend(ctx, more))
		w.wantNumbers(t, sale, 7, 1, 1)
		must(t, w.Amend(ctx, sale)) // an older version changes nothing
		w.wantNumbers(t, sale, 7, 1, 1)
		fewer := more
		fewer.Version, fewer.Units = 3, 1
		must(t, w.Amend(ctx, fewer))
		w.wantNumbers(t, sale, 0, 1, 1)
		wantOutcome(t, w.claim(t, sale.ID, request("b", 1)), seckill.OutcomeSoldOut)
		w.restock(t, sale.ID, d.Claim)
		w.wantNumbers(t, sale, 1, 0, 0)
		if e := w.claim(t, sale.ID, request("c", 1)); e.Accepted == nil || e.Accepted.PriceMinor != 12900 {
			t.Fatalf("the new price: %+v", e)
		}
	})
}

func TestKeysEndWithTheSale(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		sale := w.opened(t, 5, 2)
		w.claim(t, sale.ID, request("a", 1))
		for _, k := range []string{"sale", "stock", "buyers", "claims", "log", "rate:a"} {
			ttl, err := w.raw.PTTL(t.Context(), w.key(sale.ID, k)).Result()
			must(t, err)
			if ttl <= 0 {
				t.Errorf("%s: ttl %s", k, ttl)
			}
			if k != "rate:a" && ttl < seckill.KeepAfterClose {
				t.Errorf("%s ends inside the sale: %s", k, ttl)
			}
		}
	})
}
