package natsbridge_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	natsbridge "seckill/functions/nats-bridge"
)

// cron is expiry-cron as the ticker sees it: it tells of each trigger, and
// says what the test lets it say.
type cron struct {
	triggered chan struct{}
	answer    chan string
}

// newCron starts a cron and a ticker that triggers it.
func newCron(t *testing.T) (*cron, *natsbridge.Ticker) {
	t.Helper()
	c := &cron{triggered: make(chan struct{}), answer: make(chan string)}
	server := httptest.NewServer(c)
	ticker := natsbridge.NewTicker(natsbridge.Config{
		CronURL: server.URL, TickEvery: time.Millisecond, PostTimeout: time.Minute, PostsInFlight: 1,
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		ticker.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		server.Close()
	})
	return c, ticker
}

func (c *cron) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "not a trigger", http.StatusMethodNotAllowed)
		return
	}
	select {
	case c.triggered <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	select {
	case answer := <-c.answer:
		if answer == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, answer) //nolint:errcheck // a test's server
	case <-r.Context().Done():
	}
}

// sweep waits for a trigger and answers it.
func (c *cron) sweep(t *testing.T, answer string) {
	t.Helper()
	select {
	case <-c.triggered:
		c.answer <- answer
	case <-time.After(20 * time.Second):
		t.Fatal("no trigger comes")
	}
}

const (
	busy    = `{"rest_ms":0}`
	resting = `{"rest_ms":3600000}`
)

// rests reports that no trigger comes, as far as can be told: a ticker that
// did not rest would have come hundreds of times meanwhile.
func (c *cron) rests(t *testing.T) {
	t.Helper()
	select {
	case <-c.triggered:
		t.Error("a trigger came during the rest")
	case <-time.After(200 * time.Millisecond):
	}
}

func TestTicksWhileThereIsSomethingToWatch(t *testing.T) {
	t.Parallel()
	c, _ := newCron(t)
	for range 5 {
		c.sweep(t, busy)
	}
}

func TestRestsUntilWoken(t *testing.T) {
	t.Parallel()
	c, ticker := newCron(t)
	c.sweep(t, resting)
	c.rests(t)
	ticker.Wake()
	c.sweep(t, busy)
	c.sweep(t, resting)
	c.rests(t)
}

// What happens while a sweep runs may have passed it unseen.
func TestWakeDuringASweepCausesAnother(t *testing.T) {
	t.Parallel()
	c, ticker := newCron(t)
	<-c.triggered
	ticker.Wake()
	ticker.Wake() // many are as good as one
	c.answer <- resting
	c.sweep(t, resting)
	c.rests(t)
}

func TestNoAnswerIsNoReasonToRest(t *testing.T) {
	t.Parallel()
	c, _ := newCron(t)
	for _, answer := range []string{"", "no JSON", `{"rest_ms":-1}`, `{}`} {
		c.sweep(t, answer)
	}
	c.sweep(t, resting)
	c.rests(t)
}

// fetched is a source that delivers what it is given.
type fetched []natsbridge.Delivery

func (f fetched) Fetch(context.Context, int, time.Duration) ([]natsbridge.Delivery, error) {
	return f, nil
}

func TestClaimsWakeAndSilenceDoesNot(t *testing.T) {
	t.Parallel()
	c, ticker := newCron(t)
	c.sweep(t, resting)
	if _, err := ticker.Watch(fetched(nil)).Fetch(t.Context(), 1, 0); err != nil {
		t.Fatal(err)
	}
	c.rests(t)
	found, err := ticker.Watch(fetched(make([]natsbridge.Delivery, 2))).Fetch(t.Context(), 2, 0)
	if err != nil || len(found) != 2 {
		t.Fatalf("%d deliveries pass, error %v", len(found), err)
	}
	c.sweep(t, resting)
}

func TestNobodyToTriggerIsNoWork(t *testing.T) {
	t.Parallel()
	natsbridge.NewTicker(natsbridge.Config{}).Run(t.Context())
}
