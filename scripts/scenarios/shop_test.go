package scenarios_test

import (
	"context"
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
	"github.com/redis/go-redis/v9"

	expirycron "seckill/functions/expiry-cron"
	natsbridge "seckill/functions/nats-bridge"
	orderconsumer "seckill/functions/order-consumer"
	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/audit"
	"seckill/shared/identity"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/serve"
	"seckill/shared/testenv"
)

// patience is how long a test waits for what must come about.
const patience = time.Minute

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shop is the way of a claim, from HTTP to the settled order, with each
// function in this process and each store a real one that may be hurt.
type shop struct {
	t      *testing.T
	redis  *testenv.RedisServer
	nats   *testenv.NATSServer
	dsn    string
	store  *redisstore.Store
	raw    *redis.Client
	mysql  *mysqlstore.Store
	queue  *natsqueue.Queue
	claims http.Handler // seckill-http, as it is served
	writer http.Handler // order-consumer, as it is served
	cron   *expirycron.Handler
	sales  []string
}

// settings are what a test may want otherwise.
type settings struct {
	nats natsqueue.Config // its URL is set by newShop
	// conns bounds the connections of each store.
	conns int
}

func newShop(t *testing.T, c settings) *shop {
	t.Helper()
	if c.conns == 0 {
		c.conns = 8
	}
	s := &shop{t: t, redis: testenv.RedisOwn(t), nats: testenv.NATSOwn(t), dsn: testenv.MySQL(t)}
	var err error
	s.store, err = redisstore.Open(redisstore.Config{Addrs: []string{s.redis.Addr}, ConnsMax: c.conns, Timeout: time.Second})
	must(t, err)
	s.raw = redis.NewClient(&redis.Options{Addr: s.redis.Addr})
	s.mysql, err = mysqlstore.Open(mysqlstore.Config{DSN: s.dsn, ConnsMax: c.conns})
	must(t, err)
	must(t, s.mysql.Migrate(t.Context()))
	c.nats.URL = s.nats.URL
	s.queue, err = natsqueue.Open(c.nats)
	must(t, err)
	t.Cleanup(func() { _, _, _, _ = s.queue.Close(), s.store.Close(), s.raw.Close(), s.mysql.Close() })
	must(t, s.queue.EnsureStreams(t.Context()))
	buyers, err := identity.New(t.Context(), identity.Config{TrustHeader: "X-Buyer"})
	must(t, err)
	ping := []serve.Check{{Name: "redis", Ping: s.store.Ping}, {Name: "nats", Ping: s.queue.Ping}, {Name: "mysql", Ping: s.mysql.Ping}}
	served := serve.Config{Port: 1, InFlightMax: 2048}
	s.claims = serve.Handler(served, seckillhttp.New(seckillhttp.Config{
		BatchMax: 256, QueueMax: 4096, DecideTimeout: 1500 * time.Millisecond, AckTimeout: 100 * time.Millisecond, WaitMax: 30 * time.Second, WaitersMax: 1000,
	}, s.store, s.queue, buyers), ping[:2]...)
	s.writer = serve.Handler(served, orderconsumer.New(orderconsumer.Config{
		BodyMax: 4 << 20, BatchMax: 512, QueueMax: 20_000, Writers: 2, Timeout: 20 * time.Second,
	}, s.mysql, s.store), ping[2], ping[0])
	s.cron = expirycron.New(expirycron.Config{
		Timeout: 5 * time.Second, Batch: 500, RoundsMax: 1000, UnsettledAfter: time.Second, PrepareAhead: time.Hour,
	}, s.mysql, s.store, s.queue, time.Now)
	return s
}

// sell puts units on sale and returns the sale's id.
func (s *shop) sell(units, limit int64) string {
	s.t.Helper()
	id := testenv.Name(s.t)
	_, err := s.mysql.PutItem(s.t.Context(), seckill.Item{SKU: id, Name: "Tea"})
	must(s.t, err)
	_, err = s.mysql.PutSale(s.t.Context(), seckill.Sale{
		ID: id, SKU: id, PriceMinor: 9900, Currency: "CNY", Units: units, Limit: limit,
		OpensAt: time.Now().Add(-time.Minute), ClosesAt: time.Now().Add(time.Hour), PayWindow: 15 * time.Minute,
	})
	must(s.t, err)
	s.sales = append(s.sales, id)
	testenv.Eventually(s.t, patience, func() error {
		s.cron.Sweep(s.t.Context())
		h, err := s.store.Head(s.t.Context(), id)
		if err == nil && (!h.Loaded || h.Fence != seckill.FenceNone) {
			err = errors.New("the sale is not on sale yet")
		}
		return err
	})
	return id
}

// answer is what a function said.
type answer struct {
	status int
	header http.Header
	body   string
	fields map[string]any
}

func (a answer) field(name string) string { return fmt.Sprint(a.fields[name]) }

// ask sends a request to one of the functions.
func ask(ctx context.Context, h http.Handler, method, path, body string, header ...string) answer { //nolint:revive // the parts of a request
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), body: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a.fields) // the status tells whether there should be any
	return a
}

// claim sends a claim of one unit; an empty key sends none.
func (s *shop) claim(ctx context.Context, sale, buyer, key string) answer {
	header := []string{"X-Buyer", buyer}
	if key != "" {
		header = append(header, "Idempotency-Key", key)
	}
	return ask(ctx, s.claims, http.MethodPost, "/sales/"+sale+"/claims", `{"quantity":1}`, header...)
}

// status is what a buyer is told of his claim.
func (s *shop) status(sale, buyer, claim string) answer {
	return ask(s.t.Context(), s.claims, http.MethodGet, "/sales/"+sale+"/claims/"+claim, "", "X-Buyer", buyer)
}

// win has n buyers claim one unit each, all of whom must be told 202, and
// returns their claims by buyer.
func (s *shop) win(sale, prefix string, n int) map[string]string {
	s.t.Helper()
	won := map[string]string{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			buyer := fmt.Sprint(prefix, i)
			a := s.claim(s.t.Context(), sale, buyer, "")
			mu.Lock()
			defer mu.Unlock()
			if won[buyer] = a.field("claim"); a.status != http.StatusAccepted {
				s.t.Errorf("%s: %d %s", buyer, a.status, a.body)
			}
		})
	}
	group.Wait()
	return won
}

// ready is what a function's readiness says.
func ready(t *testing.T, h http.Handler) answer {
	t.Helper()
	return ask(t.Context(), h, http.MethodGet, "/_/ready", "")
}

// deliver runs a bridge between the stream and the writer until stop.
func (s *shop) deliver(ackWait time.Duration) (stop func()) {
	s.t.Helper()
	target := httptest.NewServer(s.writer)
	c := natsbridge.Config{
		TargetURL: target.URL, BatchMax: 256, PostsInFlight: 4, PostTimeout: ackWait - 100*time.Millisecond,
		DrainTimeout: 10 * time.Second, AckWait: ackWait,
	}
	must(s.t, c.Validate())
	ctx, cancel := context.WithCancel(s.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { natsbridge.New(c, s.queue.Claims()).Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		ended.Wait()
		target.Close()
	})
	s.t.Cleanup(stop)
	return stop
}

// rest sweeps until a sale is at rest with this many live units and Redis and
// MySQL agree to the unit, every law holding all the time.
func (s *shop) rest(sale string, live int64) {
	s.t.Helper()
	testenv.Eventually(s.t, patience, func() error {
		r, err := s.settled(sale, live)
		if err != nil && r.Sale != "" && !r.Laws.Hold() {
			s.t.Fatalf("laws: %+v", r)
		}
		return err
	})
}

// settled sweeps once and audits a sale; an error unless it is at rest, whole,
// with this many live units.
func (s *shop) settled(sale string, live int64) (audit.Report, error) {
	swept := s.cron.Sweep(s.t.Context())
	r, err := audit.Sale(s.t.Context(), s.mysql, s.store, sale)
	if err != nil {
		return audit.Report{}, err
	}
	got := r.Orders[seckill.OrderUnpaid] + r.Orders[seckill.OrderPaid]
	if !r.Laws.Hold() || !r.AtRest || r.Stock == nil || *r.Stock != r.Available || got != live || r.Opened != r.Available+live {
		return r, fmt.Errorf("%d live units at rest are wanted, audit says %+v, sweep %+v", live, r, swept)
	}
	return r, nil
}

// parked is how many messages are in the stream of the dead.
func (s *shop) parked() int {
	s.t.Helper()
	all, err := s.queue.Dead(s.t.Context(), 1000)
	must(s.t, err)
	return len(all)
}

// db is MySQL behind the functions' backs.
func (s *shop) db() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("mysql", s.dsn)
	must(s.t, err)
	s.t.Cleanup(func() { _ = db.Close() })
	return db
}
