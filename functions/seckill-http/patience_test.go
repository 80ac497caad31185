package seckillhttp_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/seckill"
)

// hanging is Redis that answers nothing: every call ends with its context.
type hanging struct{ seckillhttp.Reservations }

func (hanging) Claim(ctx context.Context, _ string, _ []seckill.ClaimRequest) ([]seckill.Decision, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("claim: %w: %w", seckill.ErrUnavailable, ctx.Err())
}

// While Redis hangs nobody waits longer than one call and the broker's answer
// may take, wherever in the queue his claim is: not for the call of the batch
// before and for his own.
func TestNobodyWaitsForTwoCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := testConfig()
		config.DecideTimeout = 1500 * time.Millisecond
		h := seckillhttp.New(config, hanging{}, &fakeBroker{}, fakeBuyers{})
		var group sync.WaitGroup
		for i := range 40 { // one every 100 ms
			group.Go(func() {
				asked := time.Now()
				w := call(h, http.MethodPost, claimsPath, fmt.Sprint("b", i), `{"quantity":1}`)
				if took := time.Since(asked); w.Code != http.StatusServiceUnavailable || took > config.DecideTimeout+config.AckTimeout {
					t.Errorf("claim %d is answered %d after %s of the bubble's time", i, w.Code, took)
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		group.Wait()
		time.Sleep(2 * config.DecideTimeout) // the last call ends, too
		synctest.Wait()
	})
}

// Ids of claims never repeat, in one process or in several, with keys or
// without.
func TestClaimIDsNeverRepeat(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]bool{}
	note := func(sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range requests {
			if seen[r.ID] || !seckill.ValidClaimID(r.ID) {
				t.Errorf("id %q again, or none", r.ID)
			}
			seen[r.ID] = true
		}
		return reserve(sale, requests)
	}
	var group sync.WaitGroup
	for replica := range 4 {
		h := seckillhttp.New(testConfig(), &fakeRedis{claim: note}, &fakeBroker{}, fakeBuyers{})
		group.Go(func() {
			for i := range 2500 {
				buyer := fmt.Sprint("b", replica, "-", i)
				if i%2 == 0 {
					call(h, http.MethodPost, claimsPath, buyer, `{"quantity":1}`)
				} else {
					call(h, http.MethodPost, claimsPath, buyer, `{"quantity":1}`, "Idempotency-Key", "same")
				}
			}
		})
	}
	group.Wait()
	if len(seen) != 10_000 {
		t.Errorf("%d ids", len(seen))
	}
}

// Whoever finds the queue full is told at once, and when to come back; the
// others wait their turn.
func TestFullQueueSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := testConfig()
		config.BatchMax, config.QueueMax = 1, 2
		h := seckillhttp.New(config, hanging{}, &fakeBroker{}, fakeBuyers{})
		var group sync.WaitGroup
		for i := range 3 { // one is being decided, two wait
			group.Go(func() { call(h, http.MethodPost, claimsPath, fmt.Sprint("b", i), `{"quantity":1}`) })
			synctest.Wait()
		}
		for i := range 100 {
			asked := time.Now()
			w := call(h, http.MethodPost, claimsPath, fmt.Sprint("late", i), `{"quantity":1}`)
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || document(t, w)["code"] != "unavailable" || !time.Now().Equal(asked) {
				t.Fatalf("%d %s %v after %s", w.Code, w.Body, w.Header(), time.Since(asked))
			}
		}
		w := call(h, http.MethodPost, "/sales/other/claims", "b", `{"quantity":1}`) // has a queue of its own
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("another sale: %d", w.Code)
		}
		group.Wait()
		time.Sleep(3 * config.DecideTimeout)
		synctest.Wait()
	})
}

// No more readers wait for results than may: the next is answered at once.
func TestReadersThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const id = "01890000-0000-7000-8000-000000000001"
		redis := &fakeRedis{readable: true, claims: map[string]seckill.Claim{
			id: {ID: id, Sale: "s1", Buyer: "b1", Quantity: 1, Status: seckill.ClaimReserved},
		}}
		config := testConfig()
		config.WaitersMax = 2
		h := seckillhttp.New(config, redis, &fakeBroker{}, fakeBuyers{})
		var group sync.WaitGroup
		waited := make(chan time.Duration, 5)
		for range 5 {
			group.Go(func() {
				asked := time.Now()
				if w := call(h, http.MethodGet, claimsPath+"/"+id, "b1", "", "Prefer", "wait=5"); w.Code != http.StatusOK {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				waited <- time.Since(asked)
			})
		}
		group.Wait()
		close(waited)
		long := 0
		for took := range waited {
			if took > 0 {
				long++
			}
		}
		if long != 2 {
			t.Errorf("%d readers waited, want 2", long)
		}
		time.Sleep(time.Second)
		synctest.Wait()
	})
}
