package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// Every call of a sale's life works on a Cluster, whichever node it lies on.
func TestClusterRunsWholeSales(t *testing.T) {
	t.Parallel()
	w := openAt(t, testenv.RedisCluster(t)...)
	ctx := t.Context()
	must(t, w.Ping(ctx))
	must(t, w.CheckEviction(ctx))
	t.Run("sales", func(t *testing.T) {
		for i := range 12 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				sale := saleFor(t, 6, 2)
				w.build(t, sale, 5, []seckill.Order{{ID: newID(), Buyer: "early", Quantity: 1, Status: seckill.OrderPaid}})
				w.liveOn(t, sale)
			})
		}
	})
	for seed := range uint64(3) {
		sale := saleFor(t, 4, 2)
		sale.ID += fmt.Sprint("-model-", seed)
		w.build(t, sale, sale.Units, nil)
		must(t, play(ctx, w, sale, seed, 60))
	}
	var used atomic.Int64
	must(t, w.raw.(*redis.ClusterClient).ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
		keys, err := node.Keys(ctx, "seckill:*:stock").Result()
		if len(keys) > 0 {
			used.Add(1)
		}
		return err
	}))
	if used.Load() < 2 {
		t.Errorf("the sales lie on %d nodes: a Cluster proves nothing then", used.Load())
	}
}

// liveOn leads a sale of 5 units in stock through all that may happen to it.
func (w world) liveOn(t *testing.T, sale seckill.Sale) {
	t.Helper()
	ctx := t.Context()
	batch := []seckill.ClaimRequest{request("a", 1), request("b", 2), request("c", 2), request("d", 1), request("early", 2)}
	for i := range batch {
		batch[i].Key = sale.ID
	}
	decisions, err := w.Claim(ctx, sale.ID, batch)
	must(t, err)
	for i, want := range []seckill.Outcome{
		seckill.OutcomeReserved, seckill.OutcomeReserved, seckill.OutcomeReserved, seckill.OutcomeSoldOut, seckill.OutcomeLimit,
	} {
		wantOutcome(t, decisions[i], want)
	}
	again := w.claim(t, sale.ID, batch[0])
	if again.Outcome != seckill.OutcomeReserved || again.Accepted == nil {
		t.Errorf("again: %+v", again)
	}
	reused := batch[0]
	reused.ID, reused.Quantity = newID(), 2
	wantOutcome(t, w.claim(t, sale.ID, reused), seckill.OutcomeReused)
	wantOutcome(t, w.claim(t, sale.ID, request("e", 1)), seckill.OutcomeSoldOut)
	wantOutcome(t, w.claim(t, sale.ID, request("e", 1)), seckill.OutcomeRate)
	claimants, peek, err := w.Claimants(ctx, sale.ID)
	if err != nil || len(claimants) != 4 || !peek.Open || peek.Stock != 0 {
		t.Errorf("claimants %v, %+v, %v", claimants, peek, err)
	}
	if _, claim, err := w.FindAccepted(ctx, []string{"unheard-of", sale.ID}, batch[1].ID); err != nil || claim.Buyer != "b" {
		t.Errorf("found %+v, %v", claim, err)
	}
	w.settle(t, sale.ID, ordered(*decisions[0].Accepted))
	w.restock(t, sale.ID, decisions[1].Claim)
	w.wantNumbers(t, sale, 2, 4, 2)
	unsettled, _, err := w.Unsettled(ctx, sale.ID, "", 0, 10)
	if err != nil || len(unsettled) != 1 || unsettled[0].Claim != batch[2].ID {
		t.Errorf("unsettled %+v, %v", unsettled, err)
	}
	sale.Version, sale.Units = 2, 7
	must(t, w.Amend(ctx, sale))
	w.wantNumbers(t, sale, 3, 4, 2)
	must(t, w.CacheItem(ctx, sale.ID, []byte("text"), 1, time.Minute))
	if text, _, err := w.CachedItem(ctx, sale.ID); err != nil || string(text) != "text" {
		t.Errorf("item %q, %v", text, err)
	}
	must(t, w.Register(ctx, []string{sale.ID}))
	must(t, w.Fence(ctx, sale.ID, sale.Epoch))
	must(t, w.NoteDrain(ctx, sale.ID, sale.Epoch, 1))
	wantOutcome(t, w.claim(t, sale.ID, request("f", 1)), seckill.OutcomeFenced)
	if readable, err := w.Readable(ctx, sale.ID); err != nil || readable {
		t.Errorf("readable %t, %v", readable, err)
	}
}

// One node that may evict is enough to be refused.
func TestEvictingRedisIsRefused(t *testing.T) {
	t.Parallel()
	addrs := testenv.RedisCluster(t)
	w, single := openAt(t, addrs...), openAt(t, addrs[0])
	for i, addr := range addrs {
		node := redis.NewClient(&redis.Options{Addr: addr})
		defer node.Close() //nolint:errcheck // nothing was left unread
		set := func(name, value string) { must(t, node.ConfigSet(t.Context(), name, value).Err()) }
		set("maxmemory", "100mb")
		must(t, w.CheckEviction(t.Context()))
		for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
			set("maxmemory-policy", policy)
			for name, store := range map[string]world{"cluster": w, "single": single} {
				err := store.CheckEviction(t.Context())
				if refused := err != nil && strings.Contains(err.Error(), policy); refused != (name == "cluster" || i == 0) {
					t.Errorf("%s, node %d with %s: %v", name, i, policy, err)
				}
			}
		}
		set("maxmemory", "0") // without a limit nothing is evicted
		must(t, w.CheckEviction(t.Context()))
		set("maxmemory-policy", "noeviction")
	}
	nobody := openAt(t, "127.0.0.1:1")
	if err := nobody.CheckEviction(t.Context()); err != nil || !errors.Is(nobody.Ping(t.Context()), seckill.ErrUnavailable) {
		t.Errorf("a Redis that is not there yet is no reason not to start, but not to be ready: %v", err)
	}
}
