package mysqlstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/shared/embedded/mysqld"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// engine is a database that the suite runs on.
type engine struct {
	name string
	// dsn names a new empty database.
	dsn   func(*testing.T) string
	conns int
	// racers is how many goroutines may compete within the time limits.
	racers int
}

var engines = []engine{
	{name: "mariadb", dsn: func(t *testing.T) string { t.Helper(); return testenv.MySQL(t) }, conns: 8, racers: 200},
	{name: "embedded", dsn: embeddedDSN, conns: mysqld.ConnsMax, racers: 12},
}

func embeddedDSN(t *testing.T) string {
	t.Helper()
	dsn, stop, err := mysqld.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return dsn
}

// env is one test on one engine, with a migrated store.
type env struct {
	*testing.T
	*Store
	engine
}

// onEach runs a test on every engine.
func onEach(t *testing.T, test func(env)) {
	t.Helper()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(newEnv(t, e, e.dsn(t)))
		})
	}
}

// onMariaDB runs a test that needs more than one connection or a real fault.
func onMariaDB(t *testing.T) env {
	t.Helper()
	return newEnv(t, engines[0], engines[0].dsn(t))
}

func newEnv(t *testing.T, e engine, dsn string) env {
	t.Helper()
	s := openStore(t, Config{DSN: dsn, ConnsMax: e.conns})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return env{T: t, Store: s, engine: e}
}

func openStore(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sale stores an open sale with an item of its own.
func (e env) sale(units, limit int64) seckill.Sale {
	e.Helper()
	id := testenv.Name(e)
	if _, err := e.PutItem(e.Context(), seckill.Item{SKU: id, Name: "限量🧨酒"}); err != nil {
		e.Fatal(err)
	}
	at := time.Now()
	sale, err := e.PutSale(e.Context(), seckill.Sale{
		ID: id, SKU: id, PriceMinor: 9900, Currency: "CNY", Units: units, Limit: limit,
		OpensAt: at.Add(-time.Minute), ClosesAt: at.Add(time.Hour), PayWindow: 15 * time.Minute,
	})
	if err != nil {
		e.Fatal(err)
	}
	return sale
}

var lastSeq atomic.Int64

// claimOf is a claim that Redis would have accepted.
func claimOf(sale seckill.Sale, buyer string, quantity int64) seckill.AcceptedClaim {
	return seckill.AcceptedClaim{
		Claim: uuid.Must(uuid.NewV7()).String(), Sale: sale.ID, SKU: sale.SKU, Buyer: buyer, Quantity: quantity,
		PriceMinor: sale.PriceMinor, Currency: sale.Currency, PayWindowMS: sale.PayWindow.Milliseconds(),
		Limit: sale.Limit, Epoch: 1, Seq: lastSeq.Add(1), AcceptedAt: time.Now(),
	}
}

// claimsOf are n claims of one unit by as many buyers.
func claimsOf(sale seckill.Sale, n int) []seckill.AcceptedClaim {
	claims := make([]seckill.AcceptedClaim, n)
	for i := range claims {
		claims[i] = claimOf(sale, fmt.Sprintf("buyer-%d", i), 1)
	}
	return claims
}

// place places claims and fails on an error.
func (e env) place(claims ...seckill.AcceptedClaim) []seckill.Placement {
	e.Helper()
	placed, err := e.PlaceOrders(e.Context(), claims)
	if err != nil {
		e.Fatal(err)
	}
	if len(placed) != len(claims) {
		e.Fatalf("%d placements of %d claims", len(placed), len(claims))
	}
	return placed
}

// exec changes rows behind the store's back.
func (e env) exec(query string, args ...any) {
	e.Helper()
	if _, err := e.db.ExecContext(e.Context(), query, args...); err != nil {
		e.Fatal(err)
	}
}

// count returns a single number.
func (e env) count(query string, args ...any) int64 {
	e.Helper()
	var n int64
	if err := e.db.QueryRowContext(e.Context(), query, args...).Scan(&n); err != nil {
		e.Fatal(err)
	}
	return n
}

// makeDue moves the deadlines of a sale's orders into the past.
func (e env) makeDue(sale seckill.Sale) {
	e.Helper()
	e.exec(`UPDATE orders SET pay_by = ? WHERE sale = ?`, ms(time.Now().Add(-time.Minute)), sale.ID)
}

// lawsHold checks a sale's numbers: opened = available + live units, nobody
// above the limit, holdings and money as the orders say; and the available
// units.
func (e env) lawsHold(sale seckill.Sale, available int64) {
	e.Helper()
	ctx := context.WithoutCancel(e.Context())
	stock, err := e.Stock(ctx, sale.ID)
	if err != nil {
		e.Fatal(err)
	}
	units, err := e.UnitsByStatus(ctx, sale.ID)
	if err != nil {
		e.Fatal(err)
	}
	live := units[seckill.OrderUnpaid] + units[seckill.OrderPaid]
	if stock.Opened != stock.Available+live || stock.Available < 0 || stock.Opened != sale.Units {
		e.Errorf("opened %d (sale %d) is not available %d + live %d", stock.Opened, sale.Units, stock.Available, live)
	}
	if stock.Available != available {
		e.Errorf("available is %d, want %d; units %v", stock.Available, available, units)
	}
	over, err := e.OverLimit(ctx, sale.ID)
	if err != nil || over != 0 {
		e.Errorf("buyers over the limit: %d, %v", over, err)
	}
	if held := e.count(`SELECT COALESCE(SUM(units), 0) FROM holdings WHERE sale = ?`, sale.ID); sale.Limit > 1 && held != live {
		e.Errorf("holdings count %d units, orders %d", held, live)
	}
	money, err := e.MoneyOf(ctx, sale.ID)
	if err != nil {
		e.Fatal(err)
	}
	for _, m := range money {
		if !m.Balanced() {
			e.Errorf("money does not add up: %+v", m)
		}
	}
}

// status fails unless an order stands written as want.
func (e env) status(id string, want seckill.OrderStatus) seckill.Order {
	e.Helper()
	o, _, err := e.Order(e.Context(), id)
	if err != nil {
		e.Fatal(err)
	}
	if o.Status != want {
		e.Errorf("order %s is %s, want %s", id, o.Status, want)
	}
	return o
}

// together runs do n times at once, from a common start.
func together(n int, do func(i int)) {
	var gate, done sync.WaitGroup
	gate.Add(1)
	for i := range n {
		done.Go(func() {
			gate.Wait()
			do(i)
		})
	}
	gate.Done()
	done.Wait()
}

// tally counts what happened, from many goroutines.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (y *tally) add(what any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.n == nil {
		y.n = map[string]int{}
	}
	y.n[fmt.Sprint(what)]++
}

// is fails unless exactly these things happened.
func (y *tally) is(tb testing.TB, want map[string]int) {
	tb.Helper()
	if fmt.Sprint(y.n) != fmt.Sprint(want) {
		tb.Errorf("happened %v, want %v", y.n, want)
	}
}
