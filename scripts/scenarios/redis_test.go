package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// Redis hangs under a rush: every claim is answered "unknown", nobody "sold
// out", liveness stays and readiness goes; and when it goes on, the same keys bring every buyer his one claim, also those who hung up.
func TestRedisHangsUnderARush(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{conns: 4})
	sale := s.sell(100, 1)
	s.win(sale, "early", 5)
	if a := ready(t, s.claims); a.status != http.StatusOK {
		t.Errorf("ready: %d %s", a.status, a.body)
	}
	s.redis.Pause()
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			ctx, hangUp := context.WithCancel(t.Context())
			defer hangUp()
			if i%3 == 0 {
				time.AfterFunc(100*time.Millisecond, hangUp)
			}
			buyer := fmt.Sprint("b", i)
			if a := s.claim(ctx, sale, buyer, "k"); a.status != http.StatusServiceUnavailable || a.field("code") != "unavailable" || a.header.Get("Retry-After") == "" {
				t.Errorf("claim: %d %s", a.status, a.body)
			}
		})
	}
	group.Wait()
	testenv.Eventually(t, patience, func() error {
		if a := ready(t, s.claims); a.status != http.StatusServiceUnavailable {
			return fmt.Errorf("ready: %d", a.status)
		}
		return nil
	})
	if a := ask(t.Context(), s.claims, http.MethodGet, "/_/health", ""); a.status != http.StatusOK {
		t.Errorf("health: %d %s", a.status, a.body)
	}
	if a := s.status(sale, "b1", "01890000-0000-7000-8000-000000000001"); a.status != http.StatusServiceUnavailable {
		t.Errorf("status: %d %s", a.status, a.body)
	}
	s.redis.Resume()
	testenv.Eventually(t, patience, func() error {
		if a := ready(t, s.claims); a.status != http.StatusOK {
			return fmt.Errorf("ready: %d %s", a.status, a.body)
		}
		return nil
	})
	for i := range 60 {
		testenv.Eventually(t, patience, func() error { // what arrived late counts as an attempt
			if a := s.claim(t.Context(), sale, fmt.Sprint("b", i), "k"); a.status != http.StatusAccepted {
				return fmt.Errorf("b%d again: %d %s", i, a.status, a.body)
			}
			return nil
		})
	}
	s.deliver(5 * time.Second)
	s.rest(sale, 65)
}

// A buyer who asks many times at once, with or without a key, holds one claim
// and is told so each time; asking after it is won is no attempt that is rated.
func TestOneBuyerAsksManyTimes(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	sale := s.sell(10, 1)
	for buyer, key := range map[string]string{"keyless": "", "keyed": "1", "other": "1"} {
		ids := make([]string, 50)
		var group sync.WaitGroup
		for i := range ids {
			group.Go(func() {
				a := s.claim(t.Context(), sale, buyer, key)
				if a.status != http.StatusAccepted && (a.status != http.StatusOK || key != "") {
					t.Errorf("%s: %d %s", buyer, a.status, a.body)
				}
				ids[i] = a.field("claim")
			})
		}
		group.Wait()
		for _, id := range ids {
			if id != ids[0] || !seckill.ValidClaimID(id) {
				t.Fatalf("%s has claims %q and %q", buyer, ids[0], id)
			}
		}
		if a := s.status(sale, buyer, ids[0]); a.status != http.StatusOK || a.field("buyer") != buyer {
			t.Errorf("status: %d %s", a.status, a.body)
		}
	}
	a := ask(t.Context(), s.claims, http.MethodPost, "/sales/"+sale+"/claims", `{"quantity":2}`, "X-Buyer", "keyed", "Idempotency-Key", "1")
	if a.status != http.StatusUnprocessableEntity || a.field("code") != "key_reused" {
		t.Errorf("the key with another quantity: %d %s", a.status, a.body)
	}
	s.deliver(5 * time.Second)
	s.rest(sale, 3)
}

// Redis loses everything under way: with claims in the stream and with claims
// in MySQL only, and comes back empty without anybody doing anything.
func TestRedisLosesEverything(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	sale := s.sell(60, 1)
	stop := s.deliver(5 * time.Second)
	s.win(sale, "w", 20)
	s.rest(sale, 20)
	stop()
	s.win(sale, "f", 20) // in the stream
	s.redis.Kill()
	s.redis.Start() // nothing was saved
	if a := s.claim(t.Context(), sale, "new", ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("not loaded: %d %s", a.status, a.body)
	}
	s.deliver(5 * time.Second)
	s.rest(sale, 40)
	for _, buyer := range []string{"w0", "f0"} {
		if a := s.claim(t.Context(), sale, buyer, ""); a.status != http.StatusOK {
			t.Errorf("%s claims again: %d %s", buyer, a.status, a.body)
		}
	}
	var sold int
	for i := range 30 {
		switch a := s.claim(t.Context(), sale, fmt.Sprint("n", i), ""); {
		case a.status == http.StatusAccepted:
			sold++
		case a.status != http.StatusConflict:
			t.Errorf("n%d: %d %s", i, a.status, a.body)
		}
	}
	if sold != 20 {
		t.Errorf("%d of the 20 units left were sold", sold)
	}
	s.rest(sale, 60)
}

// Everything is away for a while: nothing dies, liveness stays, readiness says
// so, and all of it works again by itself.
func TestEverythingGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	sale := s.sell(10, 1)
	s.deliver(5 * time.Second)
	s.redis.Pause()
	s.nats.Pause()
	health := func() {
		t.Helper()
		for name, h := range map[string]http.Handler{"seckill-http": s.claims, "order-consumer": s.writer} {
			if a := ask(t.Context(), h, http.MethodGet, "/_/health", ""); a.status != http.StatusOK {
				t.Errorf("%s lives: %d %s", name, a.status, a.body)
			}
		}
	}
	readiness := func(want int) {
		t.Helper()
		testenv.Eventually(t, patience, func() error {
			for _, h := range []http.Handler{s.claims, s.writer} {
				if a := ready(t, h); a.status != want {
					return fmt.Errorf("ready: %d %s, want %d", a.status, a.body, want)
				}
			}
			return nil
		})
	}
	readiness(http.StatusServiceUnavailable)
	health()
	if r := s.cron.Sweep(t.Context()); len(r.Errors) == 0 {
		t.Error("a sweep with nothing there found nothing wrong")
	}
	s.redis.Resume()
	s.nats.Resume()
	readiness(http.StatusOK)
	health()
	testenv.Eventually(t, patience, func() error {
		if a := s.claim(t.Context(), sale, "b", "k"); a.status != http.StatusAccepted {
			return errors.New(a.body)
		}
		return nil
	})
	s.rest(sale, 1)
}

// Redis comes back with older data, as after the promotion of a replica that
// lagged: claims that it forgot are in the stream and in MySQL, and new buyers
// take units that are sold. Nothing is oversold, nobody gets two, and everybody
// who was told "accepted" is told in the end what became of it.
func TestRedisComesBackOlder(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	const units = 40
	sale := s.sell(units, 1)
	stop := s.deliver(5 * time.Second)
	won := s.win(sale, "early", 10)
	s.rest(sale, 10)
	s.redis.Save()
	for buyer, claim := range s.win(sale, "written", 10) {
		won[buyer] = claim
	}
	s.rest(sale, 20)
	stop()
	for buyer, claim := range s.win(sale, "flying", 10) {
		won[buyer] = claim
	}
	s.redis.Kill()
	s.redis.Start()
	s.deliver(5 * time.Second)
	for i := range 30 { // Redis would sell all of them a unit, but 10 are left
		buyer := fmt.Sprint("new", i)
		switch a := s.claim(t.Context(), sale, buyer, ""); a.status {
		case http.StatusAccepted:
			won[buyer] = a.field("claim")
		case http.StatusServiceUnavailable, http.StatusConflict:
		default:
			t.Errorf("%s: %d %s", buyer, a.status, a.body)
		}
	}
	testenv.Eventually(t, patience, func() error {
		r, err := s.settled(sale, units)
		if err != nil && r.Sale != "" && (!r.Laws.NoOversell || !r.Laws.Limit) {
			t.Fatalf("laws: %+v", r)
		}
		if err != nil { // units that were not asked for again are left
			s.claim(t.Context(), sale, fmt.Sprint("more", time.Now().UnixNano()), "")
		}
		return err
	})
	for buyer, claim := range won {
		a := s.status(sale, buyer, claim)
		if was := a.field("status"); was != "ordered" && (was != "rejected" || a.field("reason") != string(seckill.ReasonSoldOut)) {
			t.Errorf("%s: %d %s", buyer, a.status, a.body)
		}
	}
	for _, buyer := range []string{"early0", "written0", "flying0"} {
		if a := s.claim(t.Context(), sale, buyer, ""); a.status != http.StatusOK || a.field("claim") != won[buyer] {
			t.Errorf("%s claims again: %d %s", buyer, a.status, a.body)
		}
	}
}
