package mysqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// bench is a sale that does not run out, on MariaDB with a flush at each
// commit.
type bench struct {
	*testing.B
	store *Store
	sale  seckill.Sale
	seq   int64
}

func newBench(b *testing.B) *bench {
	b.Helper()
	store, err := Open(Config{DSN: testenv.MySQL(b), ConnsMax: 8})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := store.PutItem(b.Context(), seckill.Item{SKU: "bench", Name: "bench"}); err != nil {
		b.Fatal(err)
	}
	at := time.Now()
	sale, err := store.PutSale(b.Context(), seckill.Sale{
		ID: "bench", SKU: "bench", PriceMinor: 9900, Currency: "CNY", Units: seckill.UnitsMax, Limit: 1,
		OpensAt: at, ClosesAt: at.Add(time.Hour), PayWindow: 15 * time.Minute,
	})
	if err != nil {
		b.Fatal(err)
	}
	return &bench{B: b, store: store, sale: sale}
}

// claims makes n claims of buyers in no order.
func (b *bench) claims(n int) []seckill.AcceptedClaim {
	claims := make([]seckill.AcceptedClaim, n)
	for i := range claims {
		b.seq++
		claims[i] = claimOf(b.sale, fmt.Sprintf("buyer-%d", b.seq*2_654_435_761%1_000_000_007), 1)
	}
	return claims
}

// raw writes the same rows and takes the same units without looking at
// anything: what a plain batch insert costs.
func (b *bench) raw(claims []seckill.AcceptedClaim) {
	rows := make([]orderRow, len(claims))
	for i, c := range claims {
		rows[i] = newOrder(c, 1, ms(c.AcceptedAt))
	}
	err := b.store.inTx(b.Context(), func(ctx context.Context, tx *sql.Tx) error {
		if err := insertOrders(ctx, tx, rows); err != nil {
			return err
		}
		return takeUnits(ctx, tx, b.sale.ID, int64(len(rows)), seen{seq: claims[len(claims)-1].Seq})
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) place(claims []seckill.AcceptedClaim) {
	placed, err := b.store.PlaceOrders(b.Context(), claims)
	if err != nil || !placed[len(placed)-1].New {
		b.Fatal(placed, err)
	}
}

// BenchmarkPlaceOrders places batches and, in turn with them, writes the same
// rows raw, so that whatever else the machine does slows both; x/raw is the
// quotient of the two speeds.
func BenchmarkPlaceOrders(b *testing.B) {
	for _, size := range []int{1, 64, 256, 500} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			bench := newBench(b)
			var placing, raw time.Duration
			orders := 0
			for b.Loop() {
				mine, theirs := bench.claims(size), bench.claims(size)
				start := time.Now()
				bench.place(mine)
				placing += time.Since(start)
				start = time.Now()
				bench.raw(theirs)
				raw += time.Since(start)
				orders += size
			}
			b.ReportMetric(float64(orders)/placing.Seconds(), "orders/s")
			b.ReportMetric(float64(orders)/raw.Seconds(), "raw/s")
			b.ReportMetric(raw.Seconds()/placing.Seconds(), "x/raw")
		})
	}
}

// BenchmarkPlaceOrdersAtOnce places batches of one sale from several
// goroutines: all of them meet at its stock row.
func BenchmarkPlaceOrdersAtOnce(b *testing.B) {
	for _, writers := range []int{2, 4, 8} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) {
			bench := newBench(b)
			const size = 256
			rounds := 0
			b.ResetTimer()
			for b.Loop() {
				batches := make([][]seckill.AcceptedClaim, writers)
				for i := range batches {
					batches[i] = bench.claims(size)
				}
				together(writers, func(i int) {
					if _, err := bench.store.PlaceOrders(b.Context(), batches[i]); err != nil {
						b.Error(err)
					}
				})
				rounds++
			}
			b.ReportMetric(float64(rounds*writers*size)/b.Elapsed().Seconds(), "orders/s")
		})
	}
}

// BenchmarkPlaceDuplicates answers batches that were placed before.
func BenchmarkPlaceDuplicates(b *testing.B) {
	bench := newBench(b)
	claims := bench.claims(256)
	bench.place(claims)
	n := 0
	for b.Loop() {
		if placed, err := bench.store.PlaceOrders(b.Context(), claims); err != nil || placed[0].New {
			b.Fatal(placed, err)
		}
		n += len(claims)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "claims/s")
}
