package natsbridge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	natsbridge "seckill/functions/nats-bridge"
	"seckill/shared/events"
	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// consumer is a target that knows how often it applied each event.
type consumer struct {
	*target
	mu      sync.Mutex
	applied map[string]int
	down    atomic.Bool
}

func newConsumer(t *testing.T) *consumer {
	t.Helper()
	c := &consumer{applied: map[string]int{}}
	judge := verdicts(func(e events.Event) seckill.Verdict {
		if _, err := e.Claim(); err != nil {
			return seckill.VerdictPoison
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.applied[e.ID]++
		return seckill.VerdictApplied
	})
	c.target = newTarget(t, func(w http.ResponseWriter, r *http.Request, batch []events.Event) {
		if c.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		judge(w, r, batch)
	})
	return c
}

func (c *consumer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.applied)
}

func openQueue(tb testing.TB, url string) *natsqueue.Queue {
	tb.Helper()
	return openQueueWith(tb, natsqueue.Config{URL: url})
}

func openQueueWith(tb testing.TB, c natsqueue.Config) *natsqueue.Queue {
	tb.Helper()
	q, err := natsqueue.Open(c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = q.Close() })
	if err := q.EnsureStreams(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return q
}

func jet(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func claims(from, n int) []seckill.AcceptedClaim {
	all := make([]seckill.AcceptedClaim, n)
	for i := range all {
		all[i] = seckill.AcceptedClaim{
			Claim: fmt.Sprintf("0190a6c0-0000-7000-8000-%012x", from+i), Sale: "s1", SKU: "phone-1", Buyer: fmt.Sprintf("b%d", from+i),
			Quantity: 1, PriceMinor: 100, Currency: "CNY", PayWindowMS: 60_000, Limit: 1, Epoch: 1, Seq: int64(from+i) + 1,
			AcceptedAt: time.UnixMilli(1_780_000_000_000).UTC(),
		}
	}
	return all
}

func publish(tb testing.TB, q *natsqueue.Queue, all []seckill.AcceptedClaim) {
	tb.Helper()
	for _, a := range q.PublishClaims(tb.Context(), all, "0") {
		if <-a.Done(); a.Err() != nil {
			tb.Fatal(a.Err())
		}
	}
}

// empty waits until the queue holds nothing any more.
func empty(t *testing.T, q *natsqueue.Queue) {
	t.Helper()
	eventually(t, "the queue is empty", func() bool {
		waiting, _, err := q.Waiting(t.Context())
		return err == nil && waiting == 0
	})
}

func parked(t *testing.T, q *natsqueue.Queue) []natsqueue.Dead {
	t.Helper()
	all, err := q.Dead(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Delivery is at least once: on a slow machine a claim may come again before
// its answer is known.
func TestEveryClaimArrives(t *testing.T) {
	t.Parallel()
	q, to := openQueue(t, testenv.NATS(t)), newConsumer(t)
	publish(t, q, claims(0, 2000))
	publish(t, q, claims(0, 2000)) // within the duplicate window
	stop := start(t, config(to.URL), q.Claims())
	empty(t, q)
	stop()
	if to.count() != 2000 {
		t.Errorf("%d applied, want 2000", to.count())
	}
	if n := len(parked(t, q)); n != 0 {
		t.Errorf("%d parked", n)
	}
}

// Poison among good claims: the good ones land, the poison is parked with its
// reason at its third delivery.
func TestPoisonAmongGoodIsParked(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q, to, js := openQueue(t, url), newConsumer(t), jet(t, url)
	poison := []string{"", "x", "{", "[]", "null", strings.Repeat("A", 1<<20), event("other") /* of another schema */}
	for i, data := range poison {
		publish(t, q, claims(i*15, 15))
		if _, err := js.Publish(t.Context(), "seckill.claims.s1", []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	stop := start(t, config(to.URL), q.Claims())
	eventually(t, "the good are applied", func() bool { return to.count() == 15*len(poison) })
	empty(t, q)
	stop()
	dead := parked(t, q)
	if len(dead) != len(poison) {
		t.Fatalf("%d parked, want %d", len(dead), len(poison))
	}
	for _, d := range dead {
		if d.Delivered != 3 || d.Reason == "" || d.Subject != "seckill.claims.s1" {
			t.Errorf("parked %.20q after %d deliveries because %q", d.Data, d.Delivered, d.Reason)
		}
	}
}

// The stream of the parked is gone: it is created again and nothing is lost.
func TestPoisonIsParkedAfterItsStreamVanished(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q, to, js := openQueue(t, url), newConsumer(t), jet(t, url)
	if err := js.DeleteStream(t.Context(), natsqueue.StreamDead); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "seckill.claims.s1", []byte("x")); err != nil {
		t.Fatal(err)
	}
	publish(t, q, claims(0, 100))
	start(t, config(to.URL), q.Claims())
	empty(t, q)
	if n := len(parked(t, q)); n != 1 || to.count() != 100 {
		t.Errorf("%d parked, %d applied; want 1 and 100", n, to.count())
	}
}

// A target that is down for a while costs no claim, and is not stormed.
func TestOutageOfTheTargetIsWaitedOut(t *testing.T) {
	t.Parallel()
	q, to := openQueue(t, testenv.NATS(t)), newConsumer(t)
	to.down.Store(true)
	publish(t, q, claims(0, 1000))
	stop := start(t, config(to.URL), q.Claims())
	eventually(t, "four tries have failed", func() bool { return len(to.postsSoFar()) >= 4 })
	to.down.Store(false)
	empty(t, q)
	stop()
	if to.count() != 1000 || len(parked(t, q)) != 0 {
		t.Errorf("%d applied, %d parked; want 1000 and 0", to.count(), len(parked(t, q)))
	}
}

func TestStreamAndConsumerDeletedUnderTheBridge(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q, to, js := openQueue(t, url), newConsumer(t), jet(t, url)
	start(t, config(to.URL), q.Claims())
	publish(t, q, claims(0, 10))
	eventually(t, "the first are applied", func() bool { return to.count() == 10 })
	if err := js.DeleteConsumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer); err != nil {
		t.Fatal(err)
	}
	publish(t, q, claims(10, 10))
	eventually(t, "those after the consumer's end", func() bool { return to.count() == 20 })
	if err := js.DeleteStream(t.Context(), natsqueue.StreamClaims); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream is there again", func() bool {
		a := q.PublishClaims(t.Context(), claims(20, 1), "0")[0]
		<-a.Done()
		return a.Err() == nil
	})
	publish(t, q, claims(21, 9))
	eventually(t, "those after the stream's end", func() bool { return to.count() == 30 })
}

func TestBrokerKilledUnderTheBridge(t *testing.T) {
	t.Parallel()
	server := testenv.NATSOwn(t)
	// What is on its way when the broker dies comes again after the ack wait.
	q, to := openQueueWith(t, natsqueue.Config{URL: server.URL, AckWait: 3 * time.Second}), newConsumer(t)
	c := config(to.URL)
	c.AckWait, c.PostTimeout = 3*time.Second, 2*time.Second
	start(t, c, q.Claims())
	for round := range 2 {
		publish(t, q, claims(round*500, 500))
		server.Kill()
		server.Start()
		eventually(t, "connected again", func() bool { return q.Ping(t.Context()) == nil })
	}
	eventually(t, "all are applied", func() bool { return to.count() == 1000 })
	empty(t, q)
	if n := len(parked(t, q)); n != 0 {
		t.Errorf("%d parked", n)
	}
}

// Rolling restarts: every claim arrives, none is parked, none is delivered
// more than three times.
func TestRestartsOfTheBridgeLoseNothing(t *testing.T) {
	t.Parallel()
	q, to := openQueue(t, testenv.NATS(t)), newConsumer(t)
	publish(t, q, claims(0, 500))
	c := config(to.URL)
	c.BatchMax = 10
	for i := range 5 {
		one, other := start(t, c, q.Claims()), start(t, c, q.Claims())
		eventually(t, "some are applied", func() bool { return to.count() >= min(50*(i+1), 500) })
		one()
		other()
	}
	start(t, c, q.Claims())
	empty(t, q)
	if to.count() != 500 || len(parked(t, q)) != 0 {
		t.Errorf("%d applied, %d parked; want 500 and 0", to.count(), len(parked(t, q)))
	}
	for id, n := range to.applied {
		if n > 3 {
			t.Errorf("%s is applied %d times", id, n)
		}
	}
}

// The rate at which events move from the stream to a target that does nothing,
// broker, bridge and target on one machine.
func BenchmarkBridge(b *testing.B) {
	q := openQueue(b, testenv.NATS(b))
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	defer to.Close()
	const size = 20_000
	rounds, moved := 0, 0
	var took time.Duration
	for b.Loop() {
		b.StopTimer()
		for i := range size / 500 {
			publish(b, q, claims(rounds*size+i*500, 500))
		}
		rounds++
		b.StartTimer()
		begin := time.Now()
		moved += move(b, q, to.URL, size)
		took += time.Since(begin)
	}
	b.ReportMetric(float64(moved)/took.Seconds(), "events/s")
}

// counting is a source that ends its bridge when enough has been fetched.
type counting struct {
	natsbridge.Source
	left atomic.Int64
	done func()
}

func (c *counting) Fetch(ctx context.Context, sizeMax int, wait time.Duration) ([]natsbridge.Delivery, error) {
	found, err := c.Source.Fetch(ctx, sizeMax, min(wait, 10*time.Millisecond))
	if c.left.Add(-int64(len(found))) <= 0 {
		c.done()
	}
	return found, err
}

// move runs a bridge until it has moved n events.
func move(b *testing.B, q *natsqueue.Queue, url string, n int) int {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	from := &counting{Source: q.Claims(), done: cancel}
	from.left.Store(int64(n))
	natsbridge.New(config(url), from).Run(ctx)
	return n
}
