package seckillhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// However many wait, for claims of however many sales, a tick costs one read.
func TestAllWhoWaitShareOneRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 300
		redis := &fakeRedis{claims: map[string]seckill.Claim{}, readable: true}
		config := testConfig()
		config.WaitersMax = n
		h := seckillhttp.New(config, redis, &fakeBroker{}, fakeBuyers{})
		claims := make([]seckill.Claim, n)
		var group sync.WaitGroup
		for i := range claims {
			c := &claims[i]
			*c = seckill.Claim{ID: uuid.NewString(), Sale: fmt.Sprint("s", i%3), Buyer: fmt.Sprint("b", i), Quantity: 1, Status: seckill.ClaimReserved}
			redis.set(*c)
			group.Go(func() {
				w := call(h, http.MethodGet, "/sales/"+c.Sale+"/claims/"+c.ID, c.Buyer, "", "Prefer", "wait=4")
				if !strings.Contains(w.Body.String(), `"status":"ordered"`) {
					t.Errorf("%s of %s: %d %s", c.ID, c.Sale, w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		time.Sleep(time.Second)
		redis.mu.Lock()
		reads := redis.reads
		redis.mu.Unlock()
		if reads > 20 { // one each 50 ms
			t.Errorf("%d reads in a second", reads)
		}
		for _, c := range claims {
			c.Status = seckill.ClaimOrdered
			redis.set(c)
		}
		group.Wait()
		time.Sleep(time.Second) // nobody waits any more, so the reading ends
	})
}

// BenchmarkResultDelay is how long after its settle each of 5,000 waiting
// buyers has his result, over a real Redis: the median, the 99th of a hundred
// and the last.
func BenchmarkResultDelay(b *testing.B) {
	const n, batch = 5000, 500
	redis, err := redisstore.Open(redisstore.Config{Addrs: []string{testenv.Redis(b)}, ConnsMax: 16, Timeout: 5 * time.Second})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = redis.Close() })
	config := testConfig()
	config.WaitersMax, config.WaitMax = n, time.Minute
	looked := &looking{Reservations: redis}
	h := seckillhttp.New(config, looked, &fakeBroker{}, fakeBuyers{})
	var delays []time.Duration
	for b.Loop() {
		sale, settlements := reserved(b, redis, n, batch)
		looked.n.Store(0)
		var group sync.WaitGroup
		told := make([]time.Time, n)
		for i, s := range settlements {
			group.Go(func() {
				w := call(h, http.MethodGet, "/sales/"+sale+"/claims/"+s.Claim, s.Buyer, "", "Prefer", "wait=50")
				if told[i] = time.Now(); !strings.Contains(w.Body.String(), `"ordered"`) {
					b.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		for looked.n.Load() < n {
			time.Sleep(10 * time.Millisecond)
		}
		settled := make([]time.Time, n)
		for from := 0; from < n; from += batch {
			at := time.Now()
			if _, err := redis.Settle(b.Context(), sale, settlements[from:from+batch]); err != nil {
				b.Fatal(err)
			}
			for i := range batch {
				settled[from+i] = at
			}
		}
		group.Wait()
		for i := range told {
			delays = append(delays, told[i].Sub(settled[i]))
		}
	}
	slices.Sort(delays)
	for name, at := range map[string]int{"p50-ms": len(delays) / 2, "p99-ms": len(delays) * 99 / 100, "max-ms": len(delays) - 1} {
		b.ReportMetric(float64(delays[at].Microseconds())/1000, name)
	}
}

// reserved puts a new sale on sale and has n buyers claim in it; it returns
// what settles their claims.
func reserved(b *testing.B, redis *redisstore.Store, n, batch int) (string, []seckill.Settlement) {
	b.Helper()
	now := time.Now()
	sale := seckill.Sale{
		ID: uuid.NewString(), SKU: "tea", PriceMinor: 9900, Currency: "CNY", Units: int64(n), Limit: 1,
		OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour), PayWindow: time.Minute, Epoch: 1, Version: 1,
	}
	if err := redis.Begin(b.Context(), sale); err != nil {
		b.Fatal(err)
	}
	if err := redis.Lift(b.Context(), sale, sale.Units, sale.Units, 0); err != nil {
		b.Fatal(err)
	}
	settlements := make([]seckill.Settlement, n)
	for from := 0; from < n; from += batch {
		requests := make([]seckill.ClaimRequest, batch)
		for i := range requests {
			requests[i] = seckill.ClaimRequest{ID: uuid.NewString(), Buyer: fmt.Sprint("b", from+i), Quantity: 1}
			settlements[from+i] = seckill.Settlement{
				Claim: requests[i].ID, Buyer: requests[i].Buyer, Quantity: 1, Status: seckill.ClaimOrdered, PayBy: now.Add(time.Minute), Epoch: 1,
			}
		}
		if _, err := redis.Claim(b.Context(), sale.ID, requests); err != nil {
			b.Fatal(err)
		}
	}
	return sale.ID, settlements
}

// looking counts the first looks of those who will wait.
type looking struct {
	seckillhttp.Reservations
	n atomic.Int64
}

func (l *looking) ClaimsOf(ctx context.Context, sale string, ids []string) ([]seckill.Claim, error) {
	defer l.n.Add(1)
	return l.Reservations.ClaimsOf(ctx, sale, ids)
}
