package mysqlstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// outcome names a placement in few words.
func outcome(p seckill.Placement) string {
	switch {
	case p.Poison != "":
		return "poison"
	case p.Order.Reason != "":
		return string(p.Order.Reason)
	case !p.New:
		return "old " + string(p.Order.Status)
	}
	return string(p.Order.Status)
}

func outcomes(placed []seckill.Placement) []string {
	list := make([]string, len(placed))
	for i, p := range placed {
		list[i] = outcome(p)
	}
	return list
}

func TestPlacedOrderIsStoredAsAnswered(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		c := claimOf(sale, "Alice", 1)
		p := e.place(c)[0]
		stored := e.status(c.Claim, seckill.OrderUnpaid)
		if p.Order != stored || !p.New {
			e.Errorf("answered %+v, stored %+v", p, stored)
		}
		if got := stored.PayBy.Sub(stored.CreatedAt); got != sale.PayWindow {
			e.Errorf("pay window is %s, want %s", got, sale.PayWindow)
		}
		if !stored.AcceptedAt.Equal(ms(c.AcceptedAt)) || stored.AmountMinor != 9900 {
			e.Errorf("stored %+v for claim %+v", stored, c)
		}
		stock, err := e.Stock(e.Context(), sale.ID)
		if err != nil || stock.Seq != c.Seq || stock.Version != 2 {
			e.Errorf("stock is %+v, %v; the claim's seq is %d", stock, err, c.Seq)
		}
		e.lawsHold(sale, 9)
	})
}

func TestPriceIsTheClaims(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 5)
		c := claimOf(sale, "a", 3)
		sale.PriceMinor = 12900
		if _, err := e.PutSale(e.Context(), sale); err != nil {
			e.Fatal(err)
		}
		e.place(c)
		if o := e.status(c.Claim, seckill.OrderUnpaid); o.AmountMinor != 3*9900 || o.PriceMinor != 9900 {
			e.Errorf("order costs %d a unit, %d in all", o.PriceMinor, o.AmountMinor)
		}
	})
}

func TestRaceForTheLastUnits(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		n := e.racers
		sale := e.sale(int64(n/2), 1)
		claims := claimsOf(sale, n)
		var seen tally
		together(n, func(i int) {
			placed, err := e.PlaceOrders(e.Context(), claims[i:i+1])
			if err != nil {
				e.Error(err)
				return
			}
			seen.add(outcome(placed[0]))
		})
		seen.is(e, map[string]int{"unpaid": n / 2, "sold_out": n / 2})
		e.lawsHold(sale, 0)
	})
}

func TestSameClaimFromManyReplicas(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(100, 1)
		claims := claimsOf(sale, 10)
		var seen tally
		together(min(e.racers, 20), func(i int) {
			mine := slices.Clone(claims)
			if i%2 == 1 {
				slices.Reverse(mine)
			}
			placed, err := e.PlaceOrders(e.Context(), mine)
			if err != nil {
				e.Error(err)
				return
			}
			for j, p := range placed {
				if p.Order.ID != mine[j].Claim || p.Order.Status != seckill.OrderUnpaid {
					e.Errorf("answer %d is %+v", j, p)
				}
				if p.New {
					seen.add("new")
				}
			}
		})
		seen.is(e, map[string]int{"new": 10})
		e.lawsHold(sale, 90)
	})
}

func TestDuplicatesMeetTheirOrderInAnyState(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(1, 1)
		first, late := claimOf(sale, "a", 1), claimOf(sale, "b", 1)
		got := outcomes(e.place(first, first, late, late))
		if want := []string{"unpaid", "old unpaid", "sold_out", "sold_out"}; !slices.Equal(got, want) {
			e.Errorf("placed %v, want %v", got, want)
		}
		if _, _, err := e.Cancel(e.Context(), first.Claim, "a"); err != nil {
			e.Fatal(err)
		}
		again := e.place(late, first)
		if again[0].New || again[0].Order.Status != seckill.OrderRejected || again[1].New || again[1].Order.Status != seckill.OrderCancelled {
			e.Errorf("placed again: %+v", again)
		}
		e.lawsHold(sale, 1)
	})
}

func TestIdOfAnotherOrderIsPoison(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 5)
		c := claimOf(sale, "a", 2)
		e.place(c)
		other, more, elsewhere, wrongSKU := c, c, c, claimOf(sale, "x", 1)
		other.Buyer, more.Quantity, elsewhere.Sale, wrongSKU.SKU = "b", 3, "elsewhere", "other"
		good := claimOf(sale, "c", 1)
		got := outcomes(e.place(other, more, elsewhere, wrongSKU, good))
		if want := []string{"poison", "poison", "poison", "poison", "unpaid"}; !slices.Equal(got, want) {
			e.Errorf("placed %v, want %v", got, want)
		}
		if o := e.status(c.Claim, seckill.OrderUnpaid); o.Buyer != "a" || o.Quantity != 2 {
			e.Errorf("the order became %+v", o)
		}
		e.lawsHold(sale, 7)
	})
}

func TestBadRowsHoldBackNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(1000, 1)
		claims := claimsOf(sale, 100)
		want := slices.Repeat([]string{"unpaid"}, 100)
		claims[36].Sale, want[36] = "unheard-of", "sale_unknown"
		claims[60], want[60] = claims[3], "old unpaid"
		claims[79].Buyer, want[79] = strings.Repeat("x", 300), "poison"
		claims[80].PriceMinor, want[80] = -1, "poison"
		claims[81].Buyer = "𠮷🐱" // another place's business, but no trouble here
		const good = 96
		placed := e.place(claims...)
		if got := outcomes(placed); !slices.Equal(got, want) {
			e.Errorf("placed %v\nwant   %v", got, want)
		}
		if n := e.count(`SELECT COUNT(*) FROM orders WHERE sale = ?`, sale.ID); n != good {
			e.Errorf("%d orders, want %d", n, good)
		}
		o := e.status(claims[36].Claim, seckill.OrderRejected)
		if o.Reason != seckill.ReasonSaleUnknown {
			e.Errorf("unknown sale: %+v", o)
		}
		e.lawsHold(sale, 1000-good)
	})
}

func TestScarceUnitsGoInTheOrderOfAcceptance(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(5, 5)
		big, bigger, small, last := claimOf(sale, "a", 3), claimOf(sale, "b", 4), claimOf(sale, "c", 2), claimOf(sale, "d", 1)
		placed := e.place(last, small, bigger, big)
		if got, want := outcomes(placed), []string{"sold_out", "unpaid", "sold_out", "unpaid"}; !slices.Equal(got, want) {
			e.Errorf("placed %v, want %v", got, want)
		}
		e.lawsHold(sale, 0)
	})
}

func TestStockBelowWhatRedisGaveOut(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(3, 1)
		e.place(claimsOf(sale, 3)...)
		for _, p := range e.place(claimOf(sale, "x", 1), claimOf(sale, "y", 1)) {
			if outcome(p) != "sold_out" || !p.New {
				e.Errorf("placed %+v", p)
			}
		}
		stock, err := e.Stock(e.Context(), sale.ID)
		if err != nil || stock.Seq < 2 {
			e.Errorf("stock %+v, %v", stock, err)
		}
		e.lawsHold(sale, 0)
	})
}

func TestManyClaimsOfManySales(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sales := []seckill.Sale{e.sale(2000, 1), e.sale(2000, 2), e.sale(2000, 1)}
		n := 6 * e.racers
		claims := make([]seckill.AcceptedClaim, n)
		for i := range claims {
			claims[i] = claimOf(sales[i%3], fmt.Sprintf("buyer-%d", i), 1)
		}
		backwards := slices.Clone(claims)
		slices.Reverse(backwards)
		together(2, func(i int) {
			placed, err := e.PlaceOrders(e.Context(), [][]seckill.AcceptedClaim{claims, backwards}[i])
			if err != nil || len(placed) != n {
				e.Errorf("%d placed, %v", len(placed), err)
			}
		})
		for _, sale := range sales {
			e.lawsHold(sale, 2000-int64(n/3))
		}
		if n := e.count(`SELECT COUNT(*) FROM outbox WHERE LENGTH(announce) > 2`); n == 0 {
			e.Error("nothing is announced")
		}
	})
}

func TestPlacementsBeforeAnErrorAreDurable(t *testing.T) {
	t.Parallel()
	e := newEnv(t, engines[0], testenv.MySQLOwn(t).AdminDSN)
	sale := e.sale(2000, 1)
	claims := claimsOf(sale, chunkMax+1)
	e.exec(`CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW
		BEGIN IF NEW.buyer = 'buyer-500' THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1053, MESSAGE_TEXT = 'away'; END IF; END`)
	placed, err := e.PlaceOrders(t.Context(), claims)
	if !errors.Is(err, seckill.ErrUnavailable) || len(placed) != chunkMax {
		t.Errorf("%d placed, %v", len(placed), err)
	}
	e.lawsHold(sale, 2000-chunkMax)
	e.exec(`DROP TRIGGER refuse`)
	got := e.place(claims...)
	if outcome(got[0]) != "old unpaid" || outcome(got[chunkMax]) != "unpaid" {
		t.Errorf("placed again: %v", outcomes(got))
	}
	e.lawsHold(sale, 2000-chunkMax-1)
}

func TestEveryNewOrderIsAnnouncedOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(1, 1)
		won, lost := claimOf(sale, "a", 1), claimOf(sale, "b", 1)
		e.place(won, lost)
		e.place(won, lost)
		var got []string
		rows, err := e.Outbox(e.Context(), 0, 10, 0)
		if err != nil {
			e.Fatal(err)
		}
		for _, row := range rows {
			if row.Sale != sale.ID || len(row.Returns) != 0 {
				e.Errorf("outbox row %+v", row)
			}
			for _, a := range row.Announce {
				got = append(got, fmt.Sprint(a.ID, " ", a.Type, " ", a.Data.Reason))
			}
		}
		want := []string{
			won.Claim + ".unpaid seckill.order.created.v1 ",
			lost.Claim + ".rejected seckill.order.rejected.v1 sold_out",
		}
		if !slices.Equal(got, want) {
			e.Errorf("announced %q\nwant %q", got, want)
		}
	})
}

func TestNoClaimsNoOrders(t *testing.T) {
	t.Parallel()
	s := openStore(t, Config{DSN: "nobody@tcp(127.0.0.1:1)/nowhere", ConnsMax: 1})
	if placed, err := s.PlaceOrders(t.Context(), nil); err != nil || len(placed) != 0 {
		t.Errorf("placed %v, %v", placed, err)
	}
	claim := seckill.AcceptedClaim{Claim: uuid.NewString()}
	if _, err := s.PlaceOrders(t.Context(), []seckill.AcceptedClaim{claim}); !errors.Is(err, seckill.ErrUnavailable) {
		t.Errorf("no database: %v", err)
	}
}
