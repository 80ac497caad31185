package orderconsumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	orderconsumer "seckill/functions/order-consumer"
	"seckill/shared/events"
	"seckill/shared/seckill"
)

// fakeOrders writes orders in memory; place can be replaced.
type fakeOrders struct {
	place func(claims []seckill.AcceptedClaim) ([]seckill.Placement, error)
	mu    sync.Mutex
	sizes []int
}

func (f *fakeOrders) PlaceOrders(_ context.Context, claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
	f.mu.Lock()
	f.sizes = append(f.sizes, len(claims))
	f.mu.Unlock()
	return f.place(claims)
}

func placed(c seckill.AcceptedClaim, status seckill.OrderStatus, isNew bool) seckill.Placement {
	return seckill.Placement{New: isNew, Order: seckill.Order{ID: c.Claim, Sale: c.Sale, Buyer: c.Buyer, Quantity: c.Quantity, Status: status, Seq: c.Seq}}
}

func placeAll(claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
	out := make([]seckill.Placement, len(claims))
	for i, c := range claims {
		out[i] = placed(c, seckill.OrderUnpaid, true)
	}
	return out, nil
}

// fakeRedis notes settlements.
type fakeRedis struct {
	answer seckill.Settled
	err    error
	mu     sync.Mutex
	got    []seckill.Settlement
}

func (f *fakeRedis) Settle(_ context.Context, _ string, settlements []seckill.Settlement) ([]seckill.Settled, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.got = append(f.got, settlements...)
	out := make([]seckill.Settled, len(settlements))
	for i := range out {
		out[i] = f.answer
	}
	return out, f.err
}

func testConfig() orderconsumer.Config {
	return orderconsumer.Config{BodyMax: 1 << 20, BatchMax: 10, QueueMax: 100, Writers: 1, Timeout: 5 * time.Second}
}

func claimOf(sale, buyer string) seckill.AcceptedClaim {
	return seckill.AcceptedClaim{
		Claim: uuid.NewString(), Sale: sale, SKU: "tea", Buyer: buyer, Quantity: 1, PriceMinor: 9900, Currency: "CNY",
		PayWindowMS: 900_000, Limit: 1, Epoch: 1, Seq: 1, AcceptedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
}

func eventOf(c seckill.AcceptedClaim) string { return string(events.AppendClaim(nil, c, "")) }

func post(h http.Handler, contentType, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func results(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var d struct{ Results []seckill.EventResult }
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	words := make([]string, len(d.Results))
	for i, r := range d.Results {
		words[i] = string(r.Verdict)
	}
	return strings.Join(words, " ")
}

func TestEveryModeOfDeliveryIsTaken(t *testing.T) {
	t.Parallel()
	h := orderconsumer.New(testConfig(), &fakeOrders{place: placeAll}, &fakeRedis{answer: seckill.SettledDone})
	c := claimOf("s1", "b1")
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"structured": post(h, events.ContentType+"; charset=utf-8", eventOf(c)),
		"binary":     post(h, "application/json", string(data), "ce-specversion", "1.0", "ce-id", "1", "ce-source", "/x", "ce-type", string(seckill.EventClaimAccepted)),
	} {
		if w.Code != 200 || results(t, w) != "applied" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	batch := post(h, events.BatchContentType, "["+eventOf(c)+","+eventOf(claimOf("s2", "b2"))+"]")
	if batch.Code != 200 || results(t, batch) != "applied applied" {
		t.Errorf("batch: %d %s", batch.Code, batch.Body)
	}
	if empty := post(h, events.BatchContentType, "[]"); empty.Code != 200 || results(t, empty) != "" {
		t.Errorf("empty batch: %d %s", empty.Code, empty.Body)
	}
}

func TestEachEventGetsItsVerdict(t *testing.T) {
	t.Parallel()
	verdicts := []seckill.Placement{}
	orders := &fakeOrders{place: func(claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
		rejected := placed(claims[1], seckill.OrderRejected, true)
		rejected.Order.Reason = seckill.ReasonSoldOut
		verdicts = []seckill.Placement{
			placed(claims[0], seckill.OrderUnpaid, true), rejected,
			placed(claims[2], seckill.OrderPaid, false),
			{Poison: "the id belongs to another order"},
			placed(claims[4], seckill.OrderCancelled, false),
		}
		return verdicts, nil
	}}
	redis := &fakeRedis{answer: seckill.SettledDone}
	h := orderconsumer.New(testConfig(), orders, redis)
	other := strings.Replace(eventOf(claimOf("s1", "b9")), string(seckill.EventClaimAccepted), "seckill.other.v1", 1)
	bad := strings.Replace(eventOf(claimOf("s1", "b9")), `"quantity":1`, `"quantity":-1`, 1)
	list := []string{other, bad, `{"specversion":"1.0"}`}
	for i := range 5 {
		list = append(list, eventOf(claimOf("s1", fmt.Sprint("b", i))))
	}
	w := post(h, events.BatchContentType, "["+strings.Join(list, ",")+"]")
	if got, want := results(t, w), "ignored poison poison applied rejected duplicate poison duplicate"; got != want {
		t.Fatalf("verdicts %q, want %q (%s)", got, want, w.Body)
	}
	states := []seckill.ClaimStatus{}
	for _, s := range redis.got {
		states = append(states, s.Status)
	}
	if fmt.Sprint(states) != "[ordered rejected ordered released]" {
		t.Errorf("settled %v", states)
	}
}

// A claim whose order may or may not be written, or that is not settled, comes
// again; nothing is settled before the orders are known to be written.
func TestUnknownIsRetried(t *testing.T) {
	t.Parallel()
	failing := &fakeOrders{place: func([]seckill.AcceptedClaim) ([]seckill.Placement, error) { return nil, errors.New("commit: no reply") }}
	for name, c := range map[string]struct {
		orders  *fakeOrders
		redis   *fakeRedis
		settled int
	}{
		"mysql":  {failing, &fakeRedis{answer: seckill.SettledDone}, 0},
		"redis":  {&fakeOrders{place: placeAll}, &fakeRedis{err: errors.New("away")}, 2},
		"fenced": {&fakeOrders{place: placeAll}, &fakeRedis{answer: seckill.SettledFenced}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := orderconsumer.New(testConfig(), c.orders, c.redis)
			claim := eventOf(claimOf("s1", "b1"))
			if w := post(h, events.BatchContentType, "["+claim+"]"); w.Code != 200 || results(t, w) != "retry" {
				t.Errorf("batch: %d %s", w.Code, w.Body)
			}
			if w := post(h, events.ContentType, claim); w.Code != 503 || w.Header().Get("Retry-After") == "" {
				t.Errorf("single: %d %s", w.Code, w.Body)
			}
			if len(c.redis.got) != c.settled {
				t.Errorf("settled %d, want %d", len(c.redis.got), c.settled)
			}
		})
	}
}

func TestWhatIsNoEventIsRefusedForGood(t *testing.T) {
	t.Parallel()
	orders := &fakeOrders{place: placeAll}
	h := orderconsumer.New(testConfig(), orders, &fakeRedis{answer: seckill.SettledDone})
	event := eventOf(claimOf("s1", "b1"))
	for name, c := range map[string]struct {
		contentType, body string
		want              int
	}{
		"plain json":     {"application/json", "{}", 415},
		"no type":        {"", event, 415},
		"empty":          {events.ContentType, "", 400},
		"null":           {events.ContentType, "null", 400},
		"cut":            {events.ContentType, event[:len(event)-2], 400},
		"batch object":   {events.BatchContentType, event, 400},
		"two ids":        {events.ContentType, strings.Replace(event, `"id":`, `"id":"x","id":`, 1), 400},
		"old version":    {events.ContentType, strings.Replace(event, `"1.0"`, `"0.3"`, 1), 400},
		"too large":      {events.ContentType, event + strings.Repeat(" ", 1<<20), 413},
		"bad data":       {events.ContentType, strings.Replace(event, `"limit":1`, `"limit":0`, 1), 422},
		"another's type": {events.ContentType, strings.Replace(event, "claim.accepted", "claim.lost", 1), 200},
	} {
		if w := post(h, c.contentType, c.body); w.Code != c.want {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
	if len(orders.sizes) != 0 {
		t.Errorf("orders were written: %v", orders.sizes)
	}
}

func TestEventsNeedTheSecret(t *testing.T) {
	t.Parallel()
	config := testConfig()
	config.Secret = "0123456789abcdef"
	h := orderconsumer.New(config, &fakeOrders{place: placeAll}, &fakeRedis{answer: seckill.SettledDone})
	event := eventOf(claimOf("s1", "b1"))
	for token, want := range map[string]int{"": 401, "Bearer wrong": 401, config.Secret: 401, "Bearer " + config.Secret: 200} {
		if w := post(h, events.ContentType, event, "Authorization", token); w.Code != want {
			t.Errorf("%q: %d, want %d", token, w.Code, want)
		}
	}
}

// Deliveries that arrive while a transaction runs share the next one, whole.
func TestDeliveriesShareATransaction(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 10), make(chan struct{})
	orders := &fakeOrders{place: func(claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
		entered <- struct{}{}
		<-release
		return placeAll(claims)
	}}
	config := testConfig()
	config.QueueMax = 12
	h := orderconsumer.New(config, orders, &fakeRedis{answer: seckill.SettledDone})
	codes := make(chan int, 20)
	send := func() {
		codes <- post(h, events.ContentType, eventOf(claimOf("s1", "b1"))).Code
	}
	go send()
	<-entered
	for range 14 {
		go send()
	}
	for range 2 { // 12 wait, the others are told to come again
		if code := <-codes; code != 503 {
			t.Fatalf("status %d", code)
		}
	}
	close(release)
	for range 13 {
		if code := <-codes; code != 200 {
			t.Errorf("status %d", code)
		}
	}
	if fmt.Sprint(orders.sizes) != "[1 10 2]" {
		t.Errorf("transactions of %v", orders.sizes)
	}
}

// One sale whose stock row somebody keeps locked does not keep the others'
// claims in the same transaction from becoming orders.
func TestOneSalesTroubleIsItsOwn(t *testing.T) {
	t.Parallel()
	orders := &fakeOrders{place: func(claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
		for _, c := range claims {
			if c.Sale == "locked" {
				return nil, seckill.ErrUnavailable
			}
		}
		return placeAll(claims)
	}}
	redis := &fakeRedis{answer: seckill.SettledDone}
	h := orderconsumer.New(testConfig(), orders, redis)
	var batch []string
	for i, sale := range []string{"s1", "locked", "s2", "s1", "locked"} {
		batch = append(batch, eventOf(claimOf(sale, fmt.Sprint("b", i))))
	}
	w := post(h, events.BatchContentType, "["+strings.Join(batch, ",")+"]")
	if got := results(t, w); got != "applied retry applied applied retry" {
		t.Errorf("verdicts are %s", got)
	}
	if len(redis.got) != 3 {
		t.Errorf("%d claims are settled, want 3", len(redis.got))
	}
}
