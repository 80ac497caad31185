package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// patient are the bounds of a call in these tests.
const patient = 1500 * time.Millisecond

// unknown fails unless a claim and Ping say that nobody knows, in time.
func (w world) unknown(t *testing.T, what, sale string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	if d, err := w.Claim(ctx, sale, []seckill.ClaimRequest{request("unlucky", 1)}); !errors.Is(err, seckill.ErrUnavailable) {
		t.Errorf("%s: claim: %+v, %v", what, d, err)
	}
	if err := w.Ping(ctx); !errors.Is(err, seckill.ErrUnavailable) {
		t.Errorf("%s: ping: %v", what, err)
	}
}

// wellAgain waits until Redis serves, then checks that the unlucky buyer of
// before holds nothing and can claim.
func (w world) wellAgain(t *testing.T, sale string) {
	t.Helper()
	testenv.Eventually(t, 20*time.Second, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patient)
		defer cancel()
		return w.Ping(ctx)
	})
	testenv.Eventually(t, 20*time.Second, func() error { // the rate of the failed claim may count
		if d := w.claim(t, sale, request("unlucky", 1)); d.Outcome != seckill.OutcomeReserved {
			return fmt.Errorf("outcome %q", d.Outcome)
		}
		return nil
	})
}

// writeRefusal makes Redis take no writes, and takes that back.
type writeRefusal struct {
	spoil, mend func(*testing.T, world)
}

func writeRefusals() map[string]writeRefusal {
	return map[string]writeRefusal{
		"memory is full": {
			func(t *testing.T, w world) {
				t.Helper()
				must(t, w.raw.ConfigSet(t.Context(), "maxmemory", "1").Err())
			},
			func(t *testing.T, w world) {
				t.Helper()
				must(t, w.raw.ConfigSet(t.Context(), "maxmemory", "0").Err())
			},
		},
		"the last snapshot failed": {
			func(t *testing.T, w world) {
				t.Helper()
				must(t, w.raw.ConfigSet(t.Context(), "save", "3600 1").Err())
				gone := filepath.Join(t.TempDir(), "gone")
				must(t, os.Mkdir(gone, 0o700))
				must(t, w.raw.ConfigSet(t.Context(), "dir", gone).Err())
				must(t, os.Remove(gone))
				testenv.Eventually(t, 20*time.Second, func() error {
					_ = w.raw.BgSave(t.Context()).Err()
					info, err := w.raw.Info(t.Context(), "persistence").Result()
					if err == nil && !strings.Contains(info, "rdb_last_bgsave_status:err") {
						err = errors.New("the snapshot has not failed yet")
					}
					return err
				})
			},
			func(t *testing.T, w world) {
				t.Helper()
				must(t, w.raw.ConfigSet(t.Context(), "dir", t.TempDir()).Err())
				testenv.Eventually(t, 20*time.Second, func() error { return w.raw.Save(t.Context()).Err() }) // another may still be failing
			},
		},
		"it became a replica": {
			func(t *testing.T, w world) {
				t.Helper()
				must(t, w.raw.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1").Err())
			},
			func(t *testing.T, w world) {
				t.Helper()
				must(t, w.raw.Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
			},
		},
	}
}

// A Redis that takes no writes, for whatever reason, refuses nobody and keeps
// nothing half done; what could not be given back is given back later.
func TestRedisThatRefusesWrites(t *testing.T) {
	t.Parallel()
	for name, fault := range writeRefusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := openAt(t, testenv.RedisOwn(t, "--enable-protected-configs", "yes").Addr)
			sale := w.opened(t, 20, 2)
			var held []seckill.Claim
			for _, buyer := range buyers(10) {
				d := w.claim(t, sale.ID, request(buyer, 1))
				wantOutcome(t, d, seckill.OutcomeReserved)
				held = append(held, d.Claim)
			}
			w.forgetRate(t, sale.ID, "b0")
			two := w.claim(t, sale.ID, request("b0", 1)) // whose holding is changed, not dropped
			fault.spoil(t, w)
			before := w.dump(t, sale.ID)
			w.unknown(t, name, sale.ID)
			var back []seckill.Return
			for _, c := range append(held, two.Claim) {
				back = append(back, seckill.Return{Claim: c.ID, Buyer: c.Buyer, Quantity: 1})
			}
			if answers, err := w.Restock(t.Context(), sale.ID, back); err == nil && name != "memory is full" {
				t.Errorf("restocked %v", answers)
			}
			if after := w.dump(t, sale.ID); after != before && name != "memory is full" {
				t.Errorf("something was written:\n%s\n%s", before, after)
			}
			fault.mend(t, w)
			for range 2 {
				_, err := w.Restock(t.Context(), sale.ID, back)
				must(t, err)
			}
			w.wantNumbers(t, sale, 20, 0, 0)
			w.wellAgain(t, sale.ID)
			w.wantNumbers(t, sale, 19, 1, 1)
		})
	}
}

// A Redis that answers PING but runs no scripts is not of use, and readiness
// says so.
func TestPingNoticesThatScriptsAreForbidden(t *testing.T) {
	t.Parallel()
	w := openAt(t, testenv.RedisOwn(t).Addr)
	sale := w.opened(t, 5, 1)
	user := func(rules ...any) {
		t.Helper()
		must(t, w.raw.Do(t.Context(), append([]any{"ACL", "SETUSER", "default"}, rules...)...).Err())
	}
	user("-eval", "-evalsha")
	must(t, w.raw.Ping(t.Context()).Err())
	w.unknown(t, "no scripts", sale.ID)
	user("+eval", "+evalsha", "-set")
	if err := w.Ping(t.Context()); !errors.Is(err, seckill.ErrUnavailable) {
		t.Errorf("ping without leave to write: %v", err)
	}
	user("+set")
	w.wellAgain(t, sale.ID)
}

// Somebody's long script makes Redis answer BUSY, and before that nothing.
func TestBusyRedisIsUnknown(t *testing.T) {
	t.Parallel()
	server := testenv.RedisOwn(t)
	w := openAt(t, server.Addr)
	sale := w.opened(t, 5, 1)
	must(t, w.raw.ConfigSet(t.Context(), "busy-reply-threshold", "200").Err())
	long := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Minute})
	ended := make(chan error, 1)
	go func() { ended <- long.Eval(t.Context(), "while true do end", nil).Err() }()
	t.Cleanup(func() { _ = long.Close() })
	testenv.Eventually(t, 20*time.Second, func() error {
		if err := w.raw.Get(t.Context(), "x").Err(); err == nil || !strings.HasPrefix(err.Error(), "BUSY") {
			return fmt.Errorf("not busy yet: %w", err)
		}
		return nil
	})
	w.unknown(t, "busy", sale.ID)
	must(t, w.raw.ScriptKill(t.Context()).Err())
	if err := <-ended; err == nil {
		t.Error("an endless script ended by itself")
	}
	w.wellAgain(t, sale.ID)
	w.wantNumbers(t, sale, 4, 1, 1)
}

// While Redis hangs every call ends by its deadline, however many come, with
// few connections; when it goes on, so do we.
func TestHangingRedisHoldsNobody(t *testing.T) {
	t.Parallel()
	server := testenv.RedisOwn(t)
	// Its own timeout is so long that only the deadline of a call can end it.
	store, err := redisstore.Open(redisstore.Config{Addrs: []string{server.Addr}, ConnsMax: 2, Timeout: 30 * time.Second})
	must(t, err)
	w := world{store, redis.NewClient(&redis.Options{Addr: server.Addr})}
	t.Cleanup(func() { _ = store.Close(); _ = w.raw.Close() })
	sale := w.opened(t, 500, 1)
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	var group sync.WaitGroup
	for _, buyer := range buyers(300) {
		group.Go(func() {
			if d, err := w.Claim(ctx, sale.ID, []seckill.ClaimRequest{request(buyer, 1)}); !errors.Is(err, seckill.ErrUnavailable) {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	calls := map[string]func() error{
		"ping":   func() error { return w.Ping(ctx) },
		"head":   func() error { _, err := w.Head(ctx, sale.ID); return err },
		"peek":   func() error { _, err := w.Peek(ctx, sale.ID); return err },
		"claims": func() error { _, err := w.ClaimsOf(ctx, sale.ID, []string{newID()}); return err },
		"known":  func() error { _, err := w.Known(ctx, sale.ID); return err },
		"item":   func() error { _, _, err := w.CachedItem(ctx, sale.SKU); return err },
		"restock": func() error {
			_, err := w.Restock(ctx, sale.ID, []seckill.Return{{Claim: newID(), Buyer: "b", Quantity: 1}})
			return err
		},
		"unsettled": func() error { _, _, err := w.Unsettled(ctx, sale.ID, "", 0, 10); return err },
	}
	for name, call := range calls {
		group.Go(func() {
			if err := call(); !errors.Is(err, seckill.ErrUnavailable) {
				t.Errorf("%s of a hanging Redis: %v", name, err)
			}
		})
	}
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(15 * time.Second):
		t.Error("calls outlive their deadline of 1.5 s")
	}
	server.Resume()
	<-ended
	w.wellAgain(t, sale.ID)
	h, err := w.Head(t.Context(), sale.ID)
	must(t, err)
	if !h.StockOK || h.Held != h.Reserved || h.Stock+h.Held != 500 {
		t.Errorf("afterwards %+v", h)
	}
}

// Scripts that Redis forgets are sent again, and no batch counts twice.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	w := openAt(t, testenv.RedisOwn(t).Addr)
	sale := w.opened(t, 400, 1)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if err := w.raw.ScriptFlush(t.Context()).Err(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	var back []seckill.Return
	for i := range 200 {
		r := request(fmt.Sprint("b", i), 1)
		r.Key = "k"
		d := w.claim(t, sale.ID, r)
		wantOutcome(t, d, seckill.OutcomeReserved)
		wantOutcome(t, w.claim(t, sale.ID, r), seckill.OutcomeReserved)
		if i%4 == 0 {
			w.settle(t, sale.ID, ordered(*d.Accepted))
		}
		if i%2 == 0 {
			back = append(back, seckill.Return{Claim: d.Claim.ID, Buyer: d.Claim.Buyer, Quantity: 1})
		}
	}
	w.wantNumbers(t, sale, 200, 200, 150)
	for range 2 {
		_, err := w.Restock(t.Context(), sale.ID, back)
		must(t, err)
		must(t, w.raw.ScriptFlush(t.Context()).Err())
	}
	close(stop)
	<-stopped
	w.wantNumbers(t, sale, 300, 100, 100)
}

// Connections that break at any time leave no rate key without an end, and
// change nothing that a buyer was not told.
func TestBrokenConnectionsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	server := testenv.RedisOwn(t)
	w := openAt(t, server.Addr)
	sale := w.opened(t, 50, 2)
	killer := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer killer.Close() //nolint:errcheck // nothing was left unread
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = killer.Do(context.Background(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err()
			}
		}
	}()
	told := 0
	for i := range 100 {
		r := request(fmt.Sprint("b", i), 1)
		if d, err := w.Claim(t.Context(), sale.ID, []seckill.ClaimRequest{r}); err == nil && d[0].Outcome == seckill.OutcomeReserved {
			told++
		}
	}
	close(stop)
	<-stopped
	h, err := w.Head(t.Context(), sale.ID)
	must(t, err)
	if !h.StockOK || h.Held < int64(told) || h.Stock+h.Held != 50 {
		t.Errorf("%d were told, Redis has %+v", told, h)
	}
	w.claim(t, sale.ID, request("last", 1)) // one rate is there for sure, the others may have ended
	keys, err := w.raw.Keys(t.Context(), "*:rate:*").Result()
	must(t, err)
	for _, key := range keys {
		if ttl, err := w.raw.PTTL(t.Context(), key).Result(); err != nil || ttl == -1 {
			t.Errorf("%s never ends (%v)", key, err)
		}
	}
}

// late is a proxy before Redis that holds every n-th reply back for longer than
// a caller waits.
func late(t *testing.T, addr string, n int, delay time.Duration) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", addr)
			if err != nil {
				_ = client.Close()
				continue
			}
			running.Go(func() { pipe(client, server, func(int) {}) })
			running.Go(func() {
				pipe(server, client, func(reply int) {
					if reply%n == 0 {
						timer := time.NewTimer(delay)
						defer timer.Stop()
						<-timer.C
					}
				})
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
	return listener.Addr().String()
}

func pipe(from, to net.Conn, before func(n int)) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buf := make([]byte, 64<<10)
	for i := 1; ; i++ {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		before(i)
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// A reply that comes after its caller has gone is not read by the next caller:
// each answer is about what was asked.
func TestLateRepliesReachNobodyElse(t *testing.T) {
	t.Parallel()
	server := testenv.RedisOwn(t)
	direct := openAt(t, server.Addr)
	const sales, each = 5, 40
	var all []seckill.Sale
	for i := range sales {
		sale := saleFor(t, each, 1)
		sale.SKU = fmt.Sprint("sku-", i)
		direct.build(t, sale, each, nil)
		must(t, direct.CacheItem(t.Context(), sale.SKU, []byte(sale.SKU), 1, time.Hour))
		all = append(all, sale)
	}
	store, err := redisstore.Open(redisstore.Config{Addrs: []string{late(t, server.Addr, 7, 1200*time.Millisecond)}, ConnsMax: 8, Timeout: 600 * time.Millisecond})
	must(t, err)
	defer store.Close() //nolint:errcheck // nothing to lose
	var group sync.WaitGroup
	var answered sync.Map
	for i := range sales * each {
		group.Go(func() {
			sale, r := all[i%sales], request(fmt.Sprint("b", i), 1)
			d, err := store.Claim(t.Context(), sale.ID, []seckill.ClaimRequest{r})
			if err == nil {
				answered.Store(i, true)
				if c := d[0].Claim; d[0].Outcome != seckill.OutcomeReserved || c.ID != r.ID || c.Buyer != r.Buyer || c.Sale != sale.ID || (d[0].Accepted != nil && d[0].Accepted.SKU != sale.SKU) {
					t.Errorf("%+v asked for by %s in %s", d[0], r.Buyer, sale.ID)
				}
			}
			if text, _, err := store.CachedItem(t.Context(), sale.SKU); err == nil && string(text) != sale.SKU {
				t.Errorf("item %s is %q", sale.SKU, text)
			}
			if c, err := store.ClaimOf(t.Context(), sale.ID, r.ID); err == nil && (c.ID != r.ID || c.Buyer != r.Buyer) {
				t.Errorf("%+v is not the claim of %s", c, r.Buyer)
			}
			if h, err := store.Head(t.Context(), sale.ID); err == nil && h.Sale.SKU != sale.SKU {
				t.Errorf("sale %s is of %s", sale.ID, h.Sale.SKU)
			}
		})
	}
	group.Wait()
	n := 0
	answered.Range(func(any, any) bool { n++; return true })
	if n == 0 || n == sales*each {
		t.Errorf("%d of %d claims were answered: no reply, or none too late", n, sales*each)
	}
	for _, sale := range all {
		h, err := direct.Head(t.Context(), sale.ID)
		must(t, err)
		if !h.StockOK || h.Stock+h.Held != each {
			t.Errorf("%+v", h)
		}
	}
}
