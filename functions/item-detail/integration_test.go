package itemdetail_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	itemdetail "seckill/functions/item-detail"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shop is one item with an open sale in a real MySQL and a real Redis.
type shop struct {
	t     *testing.T
	mysql *mysqlstore.Store
	redis *redisstore.Store
	raw   *redis.Client
	item  seckill.Item
	sale  seckill.Sale
}

func newShop(t *testing.T, dsn, redisAddr string) *shop {
	t.Helper()
	s := &shop{t: t}
	var err error
	s.mysql, err = mysqlstore.Open(mysqlstore.Config{DSN: dsn, ConnsMax: 8})
	must(t, err)
	s.redis, err = redisstore.Open(redisstore.Config{Addrs: []string{redisAddr}, ConnsMax: 8, Timeout: time.Second})
	must(t, err)
	s.raw = redis.NewClient(&redis.Options{Addr: redisAddr})
	t.Cleanup(func() { _, _, _ = s.mysql.Close(), s.redis.Close(), s.raw.Close() })
	ctx := context.Background()
	must(t, s.mysql.Migrate(ctx))
	id := testenv.Name(t)
	s.put(seckill.Item{SKU: id, Name: "Phone 1"})
	s.sale, err = s.mysql.PutSale(ctx, seckill.Sale{
		ID: id, SKU: id, PriceMinor: 9900, Currency: "CNY", Units: 2, Limit: 1,
		OpensAt: time.Now().Add(-time.Minute), ClosesAt: time.Now().Add(time.Hour), PayWindow: 15 * time.Minute,
	})
	must(t, err)
	must(t, s.mysql.NextEpoch(ctx, s.sale, 1))
	s.sale.Epoch = 1
	s.load()
	return s
}

func (s *shop) put(item seckill.Item) {
	s.t.Helper()
	var err error
	s.item, err = s.mysql.PutItem(context.Background(), item)
	must(s.t, err)
}

// load opens the sale in Redis.
func (s *shop) load() {
	s.t.Helper()
	must(s.t, s.redis.Begin(context.Background(), s.sale))
	must(s.t, s.redis.Lift(context.Background(), s.sale, 2, 2, 0))
}

func (s *shop) replica() *itemdetail.Handler {
	s.t.Helper()
	config := itemdetail.Config{CacheBytesMax: 1 << 20, SourceTimeout: 5 * time.Second, SharedTimeout: time.Second}
	h, err := itemdetail.New(config, s.mysql, s.redis, time.Now)
	must(s.t, err)
	return h
}

// claim has a buyer take a unit and returns the claim.
func (s *shop) claim(buyer string) seckill.Claim {
	s.t.Helper()
	decisions, err := s.redis.Claim(context.Background(), s.sale.ID,
		[]seckill.ClaimRequest{{ID: uuid.NewString(), Buyer: buyer, Quantity: 1}})
	must(s.t, err)
	if decisions[0].Outcome != seckill.OutcomeReserved {
		s.t.Fatalf("claim of %s: %s", buyer, decisions[0].Outcome)
	}
	return decisions[0].Claim
}

// eventually waits until every replica's answer holds all parts.
func (s *shop) eventually(replicas []http.Handler, parts ...string) {
	s.t.Helper()
	testenv.Eventually(s.t, 20*time.Second, func() error {
		for i, h := range replicas {
			a := get(h, "/items/"+s.item.SKU)
			if a.status != http.StatusOK {
				return fmt.Errorf("replica %d: %d %s", i, a.status, a.body)
			}
			for _, part := range parts {
				if !contains(a.body, part) {
					return fmt.Errorf("replica %d: %s, want %s", i, a.body, part)
				}
			}
		}
		return nil
	})
}

func TestSaleOnRealStores(t *testing.T) {
	t.Parallel()
	s := newShop(t, testenv.MySQL(t), testenv.Redis(t))
	replicas := []http.Handler{s.replica(), s.replica(), s.replica()}
	s.eventually(replicas, `"name":"Phone 1"`, `"stock":2,"sold_out":false`, `"state":"open"`)
	claim := s.claim("alice")
	s.claim("bob")
	s.eventually(replicas, `"stock":0,"sold_out":true`)
	_, err := s.redis.Restock(context.Background(), s.sale.ID, []seckill.Return{{Claim: claim.ID, Buyer: "alice", Quantity: 1}})
	must(t, err)
	s.eventually(replicas, `"stock":1,"sold_out":false`)
	s.item.Name = "Phone 2"
	s.put(s.item)
	s.eventually(replicas, `"name":"Phone 2"`)
	s.sale.PriceMinor = 12900
	_, err = s.mysql.PutSale(context.Background(), s.sale)
	must(t, err)
	s.eventually(replicas, `"price_minor":12900`)
	if a := get(replicas[0], "/items"); a.status != http.StatusOK || !contains(a.body, `"name":"Phone 2"`) {
		t.Errorf("list: %d %s", a.status, a.body)
	}
}

func TestSpoiledRedisEntriesAreRepaired(t *testing.T) {
	t.Parallel()
	s := newShop(t, testenv.MySQL(t), testenv.Redis(t))
	ctx, key := context.Background(), "seckill:{"+s.item.SKU+"}:item"
	for name, spoil := range map[string]func() error{
		"empty":         func() error { return s.raw.Set(ctx, key, "", 0).Err() },
		"a brace":       func() error { return s.raw.Set(ctx, key, "{", 0).Err() },
		"a list":        func() error { return s.raw.RPush(ctx, key, "x").Err() },
		"other text":    func() error { return s.raw.HSet(ctx, key, "document", "null", "version", 99, "ttl", 1000).Err() },
		"other layout":  func() error { return s.raw.HSet(ctx, key, "document", `{"Format":0}`, "ttl", 360_000).Err() },
		"other product": func() error { return s.raw.HSet(ctx, key, "document", `{"Format":1,"Item":{"SKU":"x"}}`).Err() },
	} {
		if name != "other layout" && name != "other product" {
			must(t, s.raw.Del(ctx, key).Err())
		}
		must(t, spoil())
		if a := get(s.replica(), "/items/"+s.item.SKU); a.status != http.StatusOK || !contains(a.body, `"name":"Phone 1"`) {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if text, err := s.raw.HGet(ctx, key, "document").Result(); err != nil || !contains(text, "Phone 1") {
			t.Errorf("%s was not repaired: %q %v", name, text, err)
		}
	}
}

func TestRedisAndMySQLComeAndGo(t *testing.T) {
	t.Parallel()
	redisServer, mysqlServer := testenv.RedisOwn(t), testenv.MySQLOwn(t)
	s := newShop(t, mysqlServer.DSN, redisServer.Addr)
	h := []http.Handler{s.replica()}
	s.eventually(h, `"stock":2`)
	redisServer.Kill()
	s.eventually(h, `"stock":null,"sold_out":false`)
	s.eventually([]http.Handler{s.replica()}, `"stock":null`) // one without a copy
	redisServer.Wipe()
	redisServer.Start()
	s.eventually(h, `"stock":null,"sold_out":false`) // not loaded is not sold out
	s.load()
	s.eventually(h, `"stock":2`)

	testenv.Eventually(t, 20*time.Second, func() error { // the next check puts the copy back
		get(h[0], "/items/"+s.item.SKU)
		_, _, err := s.redis.CachedItem(context.Background(), s.item.SKU)
		return err
	})
	mysqlServer.Kill()
	s.eventually(h, `"name":"Phone 1"`, `"stock":2`)
	s.eventually([]http.Handler{s.replica()}, `"name":"Phone 1"`, `"stock":2`) // from the copy in Redis
	mysqlServer.Start()
	s.item.Name = "Phone 2"
	testenv.Eventually(t, 20*time.Second, func() error {
		_, err := s.mysql.PutItem(context.Background(), s.item)
		return err
	})
	s.eventually(h, `"name":"Phone 2"`, `"stock":2`)
}

func TestAnnouncedChangeReachesEveryReplica(t *testing.T) {
	t.Parallel()
	s := newShop(t, testenv.MySQL(t), testenv.Redis(t))
	url := testenv.NATS(t)
	open := func() *natsqueue.Queue {
		queue, err := natsqueue.Open(natsqueue.Config{URL: url, Replicas: 1})
		must(t, err)
		t.Cleanup(func() { _ = queue.Close() })
		return queue
	}
	// The replicas' clock stands still: only a message makes them look again.
	still := time.Now()
	var replicas []http.Handler
	for range 2 {
		config := itemdetail.Config{CacheBytesMax: 1 << 20, SourceTimeout: 5 * time.Second, SharedTimeout: time.Second}
		h, err := itemdetail.New(config, s.mysql, s.redis, func() time.Time { return still })
		must(t, err)
		must(t, open().OnChanged(context.Background(), h.Changed))
		replicas = append(replicas, h)
	}
	s.eventually(replicas, `"name":"Phone 1"`)
	s.item.Name = "Phone 2"
	s.put(s.item)
	must(t, s.redis.ForgetItem(context.Background(), s.item.SKU))
	must(t, open().Changed(context.Background(), seckill.EventItemChanged, s.item.SKU, s.item.Version))
	s.eventually(replicas, `"name":"Phone 2"`)
}

func TestReadyWithOneOfTwo(t *testing.T) {
	t.Parallel()
	ok, bad := func(context.Context) error { return nil }, func(context.Context) error { return errors.New("away") }
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	ctx, cancel := context.WithCancel(context.Background())
	for name, pings := range map[string][2]func(context.Context) error{"first": {ok, bad}, "second": {hangs, ok}} {
		if err := itemdetail.AnyOf(pings[0], pings[1])(ctx); err != nil {
			t.Errorf("only the %s works: %v", name, err)
		}
	}
	cancel()
	if err := itemdetail.AnyOf(bad, hangs)(ctx); err == nil {
		t.Error("none works, and it is ready")
	}
}
