package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// servers are the Redis that every test of this package runs on: the real
// server, and the one that scripts/local embeds.
var servers = []struct {
	name string
	addr func(testing.TB) string
}{
	{"redis", testenv.Redis},
	{"embedded", testenv.EmbeddedRedis},
}

// world is a store on one server and a way to look behind it.
type world struct {
	*redisstore.Store
	raw redis.UniversalClient
}

func onEach(t *testing.T, test func(*testing.T, world)) {
	t.Helper()
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			test(t, openAt(t, server.addr(t)))
		})
	}
}

func openAt(t *testing.T, addrs ...string) world {
	t.Helper()
	store, err := redisstore.Open(redisstore.Config{Addrs: addrs, ConnsMax: 8, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	raw := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
	t.Cleanup(func() { _ = store.Close(); _ = raw.Close() })
	return world{store, raw}
}

// saleFor returns an open sale with its own name.
func saleFor(t *testing.T, units, limit int64) seckill.Sale {
	t.Helper()
	now := time.Now()
	return seckill.Sale{
		ID: testenv.Name(t), SKU: "sku-1", PriceMinor: 9900, Currency: "CNY", Units: units, Limit: limit,
		OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour), PayWindow: 15 * time.Minute, Epoch: 1, Version: 1,
	}
}

// ticketFor is a ticket that enters a sale, none if it asks for none.
func ticketFor(sale seckill.Sale) seckill.Ticket {
	if sale.Ticket == seckill.TicketNone {
		return seckill.Ticket{}
	}
	return seckill.Ticket{Kind: sale.Ticket, Epoch: sale.Epoch, Until: time.Now().Add(time.Hour)}
}

// opened puts a sale on sale that has no orders yet.
func (w world) opened(t *testing.T, units, limit int64) seckill.Sale {
	t.Helper()
	sale := saleFor(t, units, limit)
	w.build(t, sale, sale.Units, nil)
	return sale
}

func (w world) build(t *testing.T, sale seckill.Sale, available int64, orders []seckill.Order) {
	t.Helper()
	ctx := t.Context()
	must(t, w.Begin(ctx, sale))
	must(t, w.Load(ctx, sale, orders))
	must(t, w.Lift(ctx, sale, available, sale.Units, 0))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func request(buyer string, units int64) seckill.ClaimRequest {
	return seckill.ClaimRequest{ID: newID(), Buyer: buyer, Quantity: units}
}

// claim decides one request.
func (w world) claim(t *testing.T, sale string, r seckill.ClaimRequest) seckill.Decision {
	t.Helper()
	d, err := w.Claim(t.Context(), sale, []seckill.ClaimRequest{r})
	must(t, err)
	return d[0]
}

// forgetRate lets a buyer attempt again at once.
func (w world) forgetRate(t *testing.T, sale, buyer string) {
	t.Helper()
	must(t, w.raw.Del(context.Background(), fmt.Sprintf("seckill:{%s}:rate:%s", sale, buyer)).Err())
}

// keyTTL claims with an Idempotency-Key and returns how long it is remembered.
func (w world) keyTTL(t *testing.T, sale, buyer string) time.Duration {
	t.Helper()
	r := request(buyer+"-"+sale, 1)
	r.Key = "k"
	w.claim(t, sale, r)
	ttl, err := w.raw.PTTL(t.Context(), redisstore.BoundKey(r.Buyer, r.Key)).Result()
	must(t, err)
	return ttl
}

func wantOutcome(t *testing.T, d seckill.Decision, want seckill.Outcome) {
	t.Helper()
	if d.Outcome != want {
		t.Fatalf("outcome %q, want %q (%+v)", d.Outcome, want, d)
	}
}

// wantNumbers checks stock, held and reserved, and that they add up.
func (w world) wantNumbers(t *testing.T, sale seckill.Sale, stock, held, reserved int64) {
	t.Helper()
	h, err := w.Head(t.Context(), sale.ID)
	must(t, err)
	if h.Stock != stock || h.Held != held || h.Reserved != reserved || !h.StockOK {
		t.Fatalf("stock %d held %d reserved %d sound %v (debt %d, fence %q), want %d %d %d", h.Stock, h.Held, h.Reserved, h.StockOK, h.Debt, h.Fence, stock, held, reserved)
	}
}

func ordered(c seckill.AcceptedClaim) seckill.Settlement {
	return seckill.Settlement{Claim: c.Claim, Buyer: c.Buyer, Quantity: c.Quantity, Status: seckill.ClaimOrdered, PayBy: time.UnixMilli(1893456000123).UTC(), Epoch: c.Epoch}
}

func (w world) settle(t *testing.T, sale string, s seckill.Settlement) seckill.Settled {
	t.Helper()
	answers, err := w.Settle(t.Context(), sale, []seckill.Settlement{s})
	must(t, err)
	return answers[0]
}

func (w world) restock(t *testing.T, sale string, c seckill.Claim) seckill.Settled {
	t.Helper()
	answers, err := w.Restock(t.Context(), sale, []seckill.Return{{Claim: c.ID, Buyer: c.Buyer, Quantity: c.Quantity}})
	must(t, err)
	return answers[0]
}

func buyers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("b%d", i)
	}
	return out
}

func TestOpenRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, c := range []redisstore.Config{
		{ConnsMax: 1, Timeout: time.Second},
		{Addrs: []string{"localhost"}, ConnsMax: 1, Timeout: time.Second},
		{Addrs: []string{"localhost:1"}, Timeout: time.Second},
		{Addrs: []string{"localhost:1"}, ConnsMax: 1, Timeout: time.Hour},
	} {
		if _, err := redisstore.Open(c); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: want one line of error, got %v", c, err)
		}
	}
}
