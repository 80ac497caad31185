package mysqlstore

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestSaleRoundTripKeepsTheInstant(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 2)
		sale.OpensAt = time.Date(2031, 3, 9, 2, 30, 0, 700_900_000, time.FixedZone("", -5*3600))
		sale.ClosesAt = sale.OpensAt.Add(time.Hour)
		sale.PayWindow = 90*time.Second + 999*time.Microsecond
		put, err := e.PutSale(e.Context(), sale)
		if err != nil {
			e.Fatal(err)
		}
		got, err := e.Sale(e.Context(), sale.ID)
		if err != nil || got != put {
			e.Errorf("put %+v, got %+v, %v", put, got, err)
		}
		if want := time.Date(2031, 3, 9, 7, 30, 0, 700_000_000, time.UTC); got.OpensAt != want || got.PayWindow != 90*time.Second {
			e.Errorf("opens at %s, want %s; pay window %s", got.OpensAt, want, got.PayWindow)
		}
		if got.Version != 2 || got.Epoch != 0 {
			e.Errorf("stored %+v", got)
		}
		if again, err := e.PutSale(e.Context(), sale); err != nil || again != got {
			e.Errorf("the same again: %+v, %v", again, err)
		}
	})
}

func TestSaleOfNoItem(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		sale.ID, sale.SKU = sale.ID+"-2", "unheard-of"
		_, err := e.PutSale(e.Context(), sale)
		var field *seckill.FieldError
		if !errors.As(err, &field) || field.Field != "sku" {
			e.Errorf("got %v", err)
		}
		if _, err := e.Sale(e.Context(), sale.ID); !errors.Is(err, seckill.ErrNotFound) {
			e.Errorf("the sale: %v", err)
		}
		if _, err := e.Stock(e.Context(), sale.ID); !errors.Is(err, seckill.ErrNotFound) {
			e.Errorf("its stock: %v", err)
		}
	})
}

func TestUnitsMoveByTheDifference(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		e.place(claimsOf(sale, 8)...)
		for _, step := range []struct {
			units, available int64
			err              error
		}{{12, 4, nil}, {7, 4, seckill.ErrConflict}, {8, 0, nil}, {20, 12, nil}} {
			amended := sale
			amended.Units = step.units
			put, err := e.PutSale(e.Context(), amended)
			if !errors.Is(err, step.err) {
				e.Fatalf("%d units: %v, want %v", step.units, err, step.err)
			}
			if err == nil {
				sale = put
			}
			stored, err := e.Sale(e.Context(), sale.ID)
			if err != nil || stored != sale {
				e.Errorf("%d units: stored %+v, %v, want %+v", step.units, stored, err, sale)
			}
			e.lawsHold(sale, step.available)
		}
	})
}

func TestUnitsAmendedWhileSelling(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		n := e.racers
		sale := e.sale(int64(n), 1)
		claims := claimsOf(sale, n)
		amended := sale
		amended.Units = int64(n) + 20
		together(n+1, func(i int) {
			var err error
			if i == n {
				sale, err = e.PutSale(e.Context(), amended)
			} else {
				_, err = e.PlaceOrders(e.Context(), claims[i:i+1])
			}
			if err != nil {
				e.Error(err)
			}
		})
		e.lawsHold(sale, 20)
	})
}

func TestAmendmentsAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		n := min(e.racers, 30)
		sale := e.sale(100, 1)
		e.place(claimsOf(sale, 5)...)
		together(n, func(i int) {
			mine := sale
			mine.Units += int64(i + 1)
			if _, err := e.PutSale(e.Context(), mine); err != nil {
				e.Error(err)
			}
		})
		last, err := e.Sale(e.Context(), sale.ID)
		if err != nil || last.Version != sale.Version+int64(n) {
			e.Errorf("%+v, %v after %d amendments", last, err, n)
		}
		e.lawsHold(last, last.Units-5)
	})
}

func TestLimitAndSKUAreFixedOncePrepared(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		if _, err := e.PutItem(e.Context(), seckill.Item{SKU: "other", Name: "x"}); err != nil {
			e.Fatal(err)
		}
		sale.Limit = 2
		if _, err := e.PutSale(e.Context(), sale); err != nil {
			e.Fatalf("before: %v", err)
		}
		sale, err := e.Sale(e.Context(), sale.ID)
		if err != nil {
			e.Fatal(err)
		}
		if err := e.NextEpoch(e.Context(), sale, 1); err != nil {
			e.Fatal(err)
		}
		limit, sku, price := sale, sale, sale
		limit.Limit, sku.SKU, price.PriceMinor = 3, "other", 12900
		price.Ticket = seckill.TicketWork
		for _, bad := range []seckill.Sale{limit, sku} {
			if _, err := e.PutSale(e.Context(), bad); !errors.Is(err, seckill.ErrConflict) {
				e.Errorf("%+v: %v", bad, err)
			}
		}
		if put, err := e.PutSale(e.Context(), price); err != nil || put.PriceMinor != 12900 || put.Epoch != 1 || put.Limit != 2 || put.Ticket != seckill.TicketWork {
			e.Errorf("price: %+v, %v", put, err)
		}
		unbuilt := e.sale(10, 1)
		e.place(claimOf(unbuilt, "a", 1))
		unbuilt.Limit = 5
		if _, err := e.PutSale(e.Context(), unbuilt); !errors.Is(err, seckill.ErrConflict) {
			e.Errorf("limit with orders: %v", err)
		}
	})
}

func TestOneWinsAnEpoch(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		sale := e.sale(10, 1)
		var won, lost, epoch atomic.Int64
		n := min(e.racers, 20)
		together(n, func(i int) {
			err := e.NextEpoch(e.Context(), sale, int64(i+7))
			switch {
			case err == nil:
				epoch.Store(int64(i + 7))
				won.Add(1)
			case errors.Is(err, seckill.ErrSuperseded):
				lost.Add(1)
			default:
				e.Error(err)
			}
		})
		if won.Load() != 1 || lost.Load() != int64(n-1) {
			e.Errorf("%d won, %d lost", won.Load(), lost.Load())
		}
		if got, err := e.Sale(e.Context(), sale.ID); err != nil || got.Epoch != epoch.Load() || got.Version != sale.Version {
			e.Errorf("sale %+v, %v", got, err)
		}
		if err := e.NextEpoch(e.Context(), seckill.Sale{ID: "unheard-of"}, 1); !errors.Is(err, seckill.ErrNotFound) {
			e.Errorf("no sale: %v", err)
		}
	})
}

func TestSalesToPrepare(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		at := time.Now()
		put := func(name string, opens, closes time.Duration) {
			sale := e.sale(1, 1)
			sale.ID = name
			sale.OpensAt, sale.ClosesAt = at.Add(opens), at.Add(closes)
			if _, err := e.PutSale(e.Context(), sale); err != nil {
				e.Fatal(err)
			}
			e.exec(`DELETE FROM sales WHERE id = ?`, sale.SKU)
		}
		put("archived", -48*time.Hour, -25*time.Hour)
		put("closed", -48*time.Hour, -23*time.Hour)
		put("open", -time.Hour, time.Hour)
		put("soon", 9*time.Minute, time.Hour)
		put("later", 11*time.Minute, time.Hour)
		sales, err := e.SalesToPrepare(e.Context(), 10*time.Minute)
		var ids []string
		for _, s := range sales {
			ids = append(ids, s.ID)
		}
		if want := []string{"closed", "open", "soon"}; err != nil || !slices.Equal(ids, want) {
			e.Errorf("got %v, %v, want %v", ids, err, want)
		}
	})
}

func TestSalesOfSKUs(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		first, second := e.sale(1, 1), e.sale(1, 1)
		sales, err := e.SalesOf(e.Context(), []string{second.SKU, "unheard-of", testenv.Name(e)})
		if err != nil || len(sales) != 1 || sales[0] != second {
			e.Errorf("got %+v, %v; not %s", sales, err, first.ID)
		}
		if sales, err := e.SalesOf(e.Context(), nil); err != nil || len(sales) != 0 {
			e.Errorf("no skus: %+v, %v", sales, err)
		}
	})
}
