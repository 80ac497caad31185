package natsbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	natsbridge "seckill/functions/nats-bridge"
	"seckill/shared/natsqueue"
	"seckill/shared/payment"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

const notifySecret = "only-a-test-knows-this-secret"

// mailer is a shop's own receiver: it verifies, and fails as a test says.
type mailer struct {
	t        *testing.T
	webhooks *payment.Webhooks

	mu    sync.Mutex
	fails map[string]int // how often each event is refused at first
	told  map[string]int // events taken, by id
	types map[string]bool
}

func (m *mailer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	id, err := m.webhooks.Verify(r.Header, body)
	var event struct {
		ID   string             `json:"id"`
		Type string             `json:"type"`
		Data seckill.OrderEvent `json:"data"`
	}
	if err != nil || json.Unmarshal(body, &event) != nil || event.ID != id || event.Data.Buyer != "alice" {
		m.t.Errorf("%s: %v: %s", id, err, body)
	}
	if m.fails[id] > 0 {
		m.fails[id]--
		w.WriteHeader([]int{http.StatusServiceUnavailable, http.StatusBadRequest, http.StatusFound}[m.fails[id]%3])
		return
	}
	m.told[id]++
	m.types[event.Type] = true
}

// announce publishes n orders' events of each kind.
func announce(t *testing.T, queue *natsqueue.Queue, n int) (ids []string) {
	t.Helper()
	for i := range n {
		order := seckill.Order{ID: fmt.Sprintf("01890000-0000-7000-8000-%012d", i), Sale: "june", SKU: "tea", Buyer: "alice", Quantity: 1, AmountMinor: 9900, Currency: "CNY"}
		var all []seckill.Announcement
		for _, status := range []seckill.OrderStatus{seckill.OrderUnpaid, seckill.OrderPaid, seckill.OrderExpired, seckill.OrderRejected, seckill.OrderRefunded} {
			order.Status = status
			a, _ := order.Announce(time.Now())
			all, ids = append(all, a), append(ids, a.ID)
		}
		if err := queue.Announce(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// Every event of an order reaches the receiver, signed, whatever it answers at
// first, and none is told again once it was taken, also by the next process.
func TestEveryOrderEventIsToldUntilItIsTaken(t *testing.T) {
	t.Parallel()
	queue := openQueue(t, testenv.NATS(t))
	webhooks, err := payment.NewWebhooks(notifySecret)
	if err != nil {
		t.Fatal(err)
	}
	m := &mailer{t: t, webhooks: webhooks, fails: map[string]int{}, told: map[string]int{}, types: map[string]bool{}}
	receiver := httptest.NewServer(m)
	t.Cleanup(receiver.Close)
	ids := announce(t, queue, 6)
	for i, id := range ids {
		m.fails[id] = i % 4
	}
	config := natsbridge.Config{NotifyURL: receiver.URL, NotifySecret: notifySecret, PostsInFlight: 4, PostTimeout: 5 * time.Second}
	run := func(until func() error) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		over, err := natsbridge.Notify(ctx, config, queue.Orders())
		if err != nil {
			t.Fatal(err)
		}
		testenv.Eventually(t, 60*time.Second, until)
		stop()
		<-over
	}
	taken := func(n int) func() error {
		return func() error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if len(m.told) != n {
				return fmt.Errorf("%d of %d events are taken", len(m.told), n)
			}
			return nil
		}
	}
	run(taken(len(ids)))
	if len(m.types) != 5 {
		t.Errorf("types %v", m.types)
	}
	order := seckill.Order{ID: "01890000-0000-7000-8000-00000000ffff", Sale: "june", SKU: "tea", Buyer: "alice", Quantity: 1, Status: seckill.OrderPaid}
	last, _ := order.Announce(time.Now())
	if err := queue.Announce(t.Context(), []seckill.Announcement{last}); err != nil {
		t.Fatal(err)
	}
	run(taken(len(ids) + 1))
	for id, n := range m.told {
		if n != 1 {
			t.Errorf("%s was told %d times", id, n)
		}
	}
}

// What is no event cannot be told to anybody: it is taken away at once, and
// keeps no event from being told.
func TestWhatIsNoEventIsNotTold(t *testing.T) {
	t.Parallel()
	var posts atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
	t.Cleanup(receiver.Close)
	bad := []*message{{id: "text", data: []byte("hello"), delivered: 1}, batchMessage(1), batchMessage(1, `{"a":1}`), batchMessage(1, "a", "b")}
	all := append(bad, messages(1)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	config := natsbridge.Config{NotifyURL: receiver.URL, NotifySecret: notifySecret, PostsInFlight: 1, PostTimeout: 5 * time.Second}
	over, err := natsbridge.Notify(ctx, config, &source{left: all})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all are answered", func() bool {
		answer, _, _, _ := all[len(bad)].result()
		return answer != ""
	})
	stop()
	<-over
	for _, m := range all {
		if answer, _, _, _ := m.result(); answer != "ack" {
			t.Errorf("%s is answered %q", m.data, answer)
		}
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("%d posts, want 1", n)
	}
}

func TestNotifyNeedsASecretAndAURL(t *testing.T) {
	t.Parallel()
	good := natsbridge.Config{
		TargetURL: "http://target.test", BatchMax: 1, PostsInFlight: 1, PostTimeout: time.Second, AckWait: 2 * time.Second,
	}
	for _, c := range []struct {
		url, secret string
		ok          bool
	}{{"", "", true}, {"https://shop.test/mail", notifySecret, true}, {"https://shop.test/mail", "", false}, {"shop.test", notifySecret, false}} {
		config := good
		config.NotifyURL, config.NotifySecret = c.url, c.secret
		if err := config.Validate(); (err == nil) != c.ok {
			t.Errorf("%q %q: %v", c.url, c.secret, err)
		}
	}
	good.NotifyURL, good.NotifySecret = "https://shop.test", "short"
	if _, err := natsbridge.Notify(t.Context(), good, nil); err == nil {
		t.Error("a short secret is taken")
	}
	over, err := natsbridge.Notify(t.Context(), natsbridge.Config{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	<-over
}
