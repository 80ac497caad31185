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
