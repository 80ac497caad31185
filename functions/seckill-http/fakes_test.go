package seckillhttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/identity"
	"seckill/shared/seckill"
)

// fakeRedis answers what a test tells it, and counts.
type fakeRedis struct {
	seckillhttp.Reservations
	claim     func(sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error)
	claims    map[string]seckill.Claim
	known     bool
	readable  bool
	peek      seckill.SalePeek
	claimants map[string]struct{}

	mu      sync.Mutex
	batches [][]seckill.ClaimRequest
	peeks   int
	reads   int // of all that is waited for
}

func (f *fakeRedis) Claim(_ context.Context, sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error) {
	f.mu.Lock()
	f.batches = append(f.batches, requests)
	f.mu.Unlock()
	return f.claim(sale, requests)
}

func (f *fakeRedis) ClaimsOf(_ context.Context, _ string, ids []string) ([]seckill.Claim, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]seckill.Claim, len(ids))
	for i, id := range ids {
		out[i] = f.claims[id]
	}
	return out, nil
}

func (f *fakeRedis) ClaimsOfMany(_ context.Context, wanted map[string][]string) (map[string][]seckill.Claim, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	out := map[string][]seckill.Claim{}
	for sale, ids := range wanted {
		for _, id := range ids {
			if c, known := f.claims[id]; known {
				out[sale] = append(out[sale], c)
			}
		}
	}
	return out, nil
}

func (f *fakeRedis) set(c seckill.Claim) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims[c.ID] = c
}

func (f *fakeRedis) Known(context.Context, string) (bool, error)    { return f.known, nil }
func (f *fakeRedis) Readable(context.Context, string) (bool, error) { return f.readable, nil }

func (f *fakeRedis) Peek(context.Context, string) (seckill.SalePeek, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peeks++
	return f.peek, nil
}

func (f *fakeRedis) Claimants(context.Context, string) (map[string]struct{}, seckill.SalePeek, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.claimants, f.peek, nil
}

func (f *fakeRedis) counts() (batches, peeks int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.batches), f.peeks
}

// reserve accepts every request.
func reserve(sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error) {
	out := make([]seckill.Decision, len(requests))
	for i, r := range requests {
		c := seckill.Claim{ID: r.ID, Sale: sale, Buyer: r.Buyer, Quantity: r.Quantity, Status: seckill.ClaimReserved}
		out[i] = seckill.Decision{Outcome: seckill.OutcomeReserved, Claim: c, Accepted: &seckill.AcceptedClaim{Claim: r.ID, Sale: sale, Buyer: r.Buyer}, Epoch: 1, Seq: 1, Stock: 1}
	}
	return out, nil
}

// decideAll gives every request the same decision.
func decideAll(d seckill.Decision) func(string, []seckill.ClaimRequest) ([]seckill.Decision, error) {
	return func(_ string, requests []seckill.ClaimRequest) ([]seckill.Decision, error) {
		out := make([]seckill.Decision, len(requests))
		for i := range out {
			out[i] = d
		}
		return out, nil
	}
}

// fakeAck is an answer of the broker.
type fakeAck chan struct{}

func (a fakeAck) Done() <-chan struct{} { return a }
func (a fakeAck) Err() error            { return nil }
func (a fakeAck) Duplicate() bool       { return false }

// fakeBroker takes claims; it answers them unless it is silent.
type fakeBroker struct {
	silent bool
	hold   chan struct{} // if not nil, answers come when it is closed
	mu     sync.Mutex
	taken  []seckill.AcceptedClaim
	sizes  []int // of the batches
}

func (b *fakeBroker) PublishBatch(_ context.Context, claims []seckill.AcceptedClaim) []seckillhttp.Ack {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken, b.sizes = append(b.taken, claims...), append(b.sizes, len(claims))
	acks := make([]seckillhttp.Ack, len(claims))
	for i := range acks {
		ack := make(fakeAck)
		switch {
		case b.hold != nil:
			ack = b.hold
		case !b.silent:
			close(ack)
		}
		acks[i] = ack
	}
	return acks
}

// fakeBuyers takes the bearer token for the buyer.
type fakeBuyers struct{}

func (fakeBuyers) Buyer(r *http.Request) (string, error) {
	buyer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", errors.Join(identity.ErrUnauthenticated, errors.New("no token"))
	}
	return buyer, nil
}

func testConfig() seckillhttp.Config {
	return seckillhttp.Config{
		BatchMax: 256, QueueMax: 4096, DecideTimeout: 2 * time.Second, AckTimeout: 50 * time.Millisecond,
		WaitMax: 5 * time.Second, WaitersMax: 100,
	}
}

// call sends one request and returns the answer.
func call(h http.Handler, method, path, buyer, body string, header ...string) *httptest.ResponseRecorder { //nolint:revive // the parts of a request
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if buyer != "" {
		r.Header.Set("Authorization", "Bearer "+buyer)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
