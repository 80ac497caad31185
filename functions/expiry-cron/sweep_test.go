package expirycron_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	expirycron "seckill/functions/expiry-cron"
	"seckill/shared/audit"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/rebuild"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// shop is one sale in real stores, and the function that sweeps it.
type shop struct {
	t     *testing.T
	mysql *mysqlstore.Store
	redis *redisstore.Store
	queue *natsqueue.Queue
	raw   *redis.Client
	db    *sql.DB
	cron  *expirycron.Handler
	id    string
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newShop(t *testing.T, units int64, payWindow time.Duration) *shop {
	t.Helper()
	dsn := testenv.MySQL(t)
	mysql, err := mysqlstore.Open(mysqlstore.Config{DSN: dsn, ConnsMax: 4})
	must(t, err)
	db, err := sql.Open("mysql", dsn)
	must(t, err)
	must(t, mysql.Migrate(t.Context()))
	server := testenv.RedisOwn(t) // the registry of sales belongs to one MySQL
	store, err := redisstore.Open(redisstore.Config{Addrs: []string{server.Addr}, ConnsMax: 8, Timeout: 2 * time.Second})
	must(t, err)
	queue, err := natsqueue.Open(natsqueue.Config{URL: testenv.NATS(t)})
	must(t, err)
	must(t, queue.EnsureStreams(t.Context()))
	config := expirycron.Config{Timeout: 30 * time.Second, Batch: 7, RoundsMax: 100, UnsettledAfter: time.Second, PrepareAhead: time.Hour}
	s := &shop{
		t: t, mysql: mysql, redis: store, queue: queue, raw: redis.NewClient(&redis.Options{Addr: server.Addr}), db: db,
		cron: expirycron.New(config, mysql, store, queue, time.Now), id: testenv.Name(t),
	}
	t.Cleanup(func() { _ = queue.Close(); _ = store.Close(); _ = mysql.Close(); _ = db.Close(); _ = s.raw.Close() })
	_, err = mysql.PutItem(t.Context(), seckill.Item{SKU: "tea", Name: "Tea"})
	must(t, err)
	_, err = mysql.PutSale(t.Context(), seckill.Sale{
		ID: s.id, SKU: "tea", PriceMinor: 9900, Currency: "CNY", Units: units, Limit: 1,
		OpensAt: time.Now().Add(-time.Minute), ClosesAt: time.Now().Add(time.Hour), PayWindow: payWindow,
	})
	must(t, err)
	if r := s.sweep(); r.Sales[rebuild.Built] != 1 {
		t.Fatalf("the first sweep prepares the sale: %+v", r)
	}
	return s
}

// sweep sends the request of OpenFaaS' cron-connector.
func (s *shop) sweep() expirycron.Report {
	s.t.Helper()
	w := httptest.NewRecorder()
	s.cron.ServeHTTP(w, httptest.NewRequestWithContext(s.t.Context(), http.MethodPost, "/", http.NoBody))
	var r expirycron.Report
	must(s.t, json.Unmarshal(w.Body.Bytes(), &r))
	if (w.Code == http.StatusOK) != (len(r.Errors) == 0) {
		s.t.Fatalf("status %d with %+v", w.Code, r)
	}
	if len(r.Violations) != 0 {
		s.t.Fatalf("violations: %+v", r)
	}
	return r
}

func (s *shop) claim(n int) []seckill.AcceptedClaim {
	s.t.Helper()
	requests := make([]seckill.ClaimRequest, n)
	for i := range requests {
		requests[i] = seckill.ClaimRequest{ID: uuid.NewString(), Buyer: fmt.Sprintf("b%d", i), Quantity: 1}
	}
	decisions, err := s.redis.Claim(s.t.Context(), s.id, requests)
	must(s.t, err)
	claims := make([]seckill.AcceptedClaim, n)
	for i, d := range decisions {
		if d.Accepted == nil {
			s.t.Fatalf("claim %d: %+v", i, d)
		}
		claims[i] = *d.Accepted
	}
	return claims
}

// order turns claims into orders, as order-consumer does.
func (s *shop) order(claims []seckill.AcceptedClaim) {
	s.t.Helper()
	placed, err := s.mysql.PlaceOrders(s.t.Context(), claims)
	must(s.t, err)
	settlements := make([]seckill.Settlement, len(placed))
	for i, p := range placed {
		settlements[i] = p.Settlement(claims[i])
	}
	_, err = s.redis.Settle(s.t.Context(), s.id, settlements)
	must(s.t, err)
}

// expired sweeps until all orders are past their deadline and expired.
func (s *shop) wantExpired(n int) {
	s.t.Helper()
	total := 0
	testenv.Eventually(s.t, 20*time.Second, func() error {
		if total += s.sweep().Expired; total != n {
			return fmt.Errorf("%d orders are expired, want %d", total, n)
		}
		return nil
	})
}

// atRest checks the laws and that both stores say this stock.
func (s *shop) atRest(stock int64) {
	s.t.Helper()
	r, err := audit.Sale(s.t.Context(), s.mysql, s.redis, s.id)
	must(s.t, err)
	if !r.Laws.Hold() || !r.AtRest || *r.Stock != stock || r.Available != stock {
		s.t.Fatalf("at rest with stock %d is wanted, audit says %+v", stock, r)
	}
}

func TestDueOrdersExpireAndTheirUnitsSellAgain(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, time.Second)
	s.order(s.claim(20))
	s.wantExpired(20)
	s.atRest(20)
	if r := s.sweep(); r.Expired != 0 || r.Returned != 0 || r.Waiting != 0 {
		t.Fatalf("another sweep finds work: %+v", r)
	}
	must(t, s.raw.FlushAll(t.Context()).Err()) // the rate keys; and the sale, which comes back
	testenv.Eventually(t, 30*time.Second, func() error {
		s.sweep()
		head, err := s.redis.Head(t.Context(), s.id)
		if err == nil && (!head.Loaded || head.Fence != seckill.FenceNone) {
			err = errors.New("not built yet")
		}
		return err
	})
	s.order(s.claim(20))
	s.atRest(0)
}

func TestSweepsAtOnceRestockOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 60, time.Second)
	s.order(s.claim(60))
	var mu sync.Mutex
	total := 0
	testenv.Eventually(t, 30*time.Second, func() error {
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				n := s.cron.Sweep(t.Context()).Expired
				mu.Lock()
				defer mu.Unlock()
				total += n
			})
		}
		wg.Wait()
		if total != 60 {
			return fmt.Errorf("%d expired", total)
		}
		return nil
	})
	testenv.Eventually(t, 10*time.Second, func() error {
		if r := s.sweep(); r.Waiting != 0 || r.Returned != 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.atRest(60)
}

// The process that accepted claims died before it published them.
func TestClaimsThatWereNeverPublishedArePublished(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, time.Minute)
	claims := s.claim(9)
	testenv.Eventually(t, 20*time.Second, func() error {
		if n := s.sweep().Republished; n != 9 {
			return fmt.Errorf("%d republished", n)
		}
		return nil
	})
	if r := s.sweep(); r.Republished != 0 {
		t.Fatalf("published again inside the broker's window: %+v", r)
	}
	deliveries, err := s.queue.Claims().Fetch(t.Context(), 20, 5*time.Second)
	must(t, err)
	if len(deliveries) != len(claims) {
		t.Fatalf("%d deliveries of %d claims", len(deliveries), len(claims))
	}
	s.order(claims)
	s.atRest(11)
}

// The writer of a cancel died before it gave the units back.
func TestLeftOverReturnIsFinished(t *testing.T) {
	t.Parallel()
	s := newShop(t, 3, time.Minute)
	claims := s.claim(3)
	s.order(claims)
	_, row, err := s.mysql.Cancel(t.Context(), claims[0].Claim, claims[0].Buyer)
	must(t, err)
	if len(row.Returns) != 1 {
		t.Fatalf("row %+v", row)
	}
	sale, err := s.mysql.Sale(t.Context(), s.id)
	must(t, err)
	sale.Epoch = 9
	must(t, s.redis.Begin(t.Context(), sale)) // somebody builds the sale, and dies
	if r := s.sweep(); r.Returned != 0 || r.Waiting != 1 {
		t.Fatalf("returned while the sale is built: %+v", r)
	}
	testenv.Eventually(t, 60*time.Second, func() error {
		if r := s.sweep(); r.Waiting != 0 || r.Sales[rebuild.Fresh] != 1 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.atRest(1)
}

func TestOrdersAreAnnouncedOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, time.Minute)
	s.order(s.claim(5))
	if r := s.sweep(); r.Announced != 5 {
		t.Fatalf("announced: %+v", r)
	}
	if r := s.sweep(); r.Announced != 0 {
		t.Fatalf("announced again: %+v", r)
	}
}

// A part that fails does not keep the others from their work.
func TestOrdersExpireWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, time.Second)
	s.order(s.claim(5))
	away, err := redisstore.Open(redisstore.Config{Addrs: []string{"127.0.0.1:1"}, ConnsMax: 1, Timeout: 50 * time.Millisecond})
	must(t, err)
	defer away.Close() //nolint:errcheck // never connected
	half := expirycron.New(expirycron.Config{Timeout: 30 * time.Second, Batch: 7, RoundsMax: 100, UnsettledAfter: time.Second, PrepareAhead: time.Hour}, s.mysql, away, s.queue, time.Now)
	testenv.Eventually(t, 20*time.Second, func() error {
		w := httptest.NewRecorder()
		half.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(`{"any":"body"}`)))
		if w.Code != http.StatusServiceUnavailable {
			t.Fatalf("a sweep without Redis must say so: %d %s", w.Code, w.Body)
		}
		units, err := s.mysql.UnitsByStatus(t.Context(), s.id)
		if err == nil && units[seckill.OrderExpired] != 5 {
			err = fmt.Errorf("%v", units)
		}
		return err
	})
	testenv.Eventually(t, 20*time.Second, func() error {
		if r := s.sweep(); r.Waiting != 0 {
			return fmt.Errorf("%+v", r)
		}
		return nil
	})
	s.atRest(5)
}

func TestOnlyPOSTSweeps(t *testing.T) {
	t.Parallel()
	h := expirycron.New(expirycron.Config{}, nil, nil, nil, time.Now)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "POST" {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
}
