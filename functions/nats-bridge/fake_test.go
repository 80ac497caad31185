package natsbridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	natsbridge "seckill/functions/nats-bridge"
	"seckill/shared/events"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

const patience = time.Minute

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		if done() {
			return nil
		}
		return errors.New(what)
	})
}

// message is a delivery that notes how it was answered.
type message struct {
	id        string
	data      []byte
	header    map[string][]string
	delivered int
	parkErr   error

	mu       sync.Mutex
	answer   string // ack, nak or park; more than one are joined
	delay    time.Duration
	reason   string
	progress int
}

func (m *message) ID() string                  { return m.id }
func (m *message) Data() []byte                { return m.data }
func (m *message) Header() map[string][]string { return m.header }
func (m *message) Delivered() int              { return m.delivered }
func (m *message) Ack() error                  { return m.note("ack", 0, "") }
func (m *message) Nak(delay time.Duration) error {
	return m.note("nak", delay, "")
}

func (m *message) Park(_ context.Context, reason string) error {
	if m.parkErr != nil {
		return m.parkErr
	}
	return m.note("park", 0, reason)
}

func (m *message) ParkPart(_ context.Context, index int, id string, _ []byte, reason string) error {
	if m.parkErr != nil {
		return m.parkErr
	}
	return m.note(fmt.Sprintf("part %d %s, ", index, id), 0, reason)
}

func (m *message) InProgress() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress++
	return nil
}

func (m *message) note(answer string, delay time.Duration, reason string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer, m.delay, m.reason = m.answer+answer, delay, reason
	return nil
}

// result is how the message was answered so far.
func (m *message) result() (answer string, delay time.Duration, reason string, progress int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.answer, m.delay, m.reason, m.progress
}

// messages makes n events, delivered for the first time.
func messages(n int) []*message {
	all := make([]*message, n)
	for i := range all {
		id := fmt.Sprintf("e%d", i)
		all[i] = &message{id: id, data: []byte(event(id)), delivered: 1}
	}
	return all
}

func event(id string) string {
	return `{"specversion":"1.0","id":"` + id + `","source":"/s","type":"t"}`
}

// source gives its messages out once.
type source struct {
	mu   sync.Mutex
	left []*message
	err  error // of the next fetch
	asks []int // sizes of the fetches
}

func (s *source) sizes() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks
}

func (s *source) Fetch(ctx context.Context, sizeMax int, wait time.Duration) ([]natsbridge.Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, sizeMax)
	if err := s.err; err != nil {
		s.err = nil
		return nil, err
	}
	if len(s.left) == 0 {
		s.mu.Unlock()
		defer s.mu.Lock()
		timer := time.NewTimer(min(wait, 20*time.Millisecond))
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		return nil, nil
	}
	n := min(sizeMax, len(s.left))
	var found []natsbridge.Delivery
	for _, m := range s.left[:n] {
		found = append(found, m)
	}
	s.left = s.left[n:]
	return found, nil
}

// target is an HTTP server that reads what it is sent.
type target struct {
	*httptest.Server
	mu    sync.Mutex
	posts [][]events.Event
}

// newTarget answers each batch by answer.
func newTarget(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, batch []events.Event)) *target {
	t.Helper()
	to := &target{}
	to.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		batch, isBatch, err := events.Read(r, 4<<20)
		if err != nil || !isBatch {
			t.Errorf("posted no batch: %v", err)
		}
		to.mu.Lock()
		to.posts = append(to.posts, batch)
		to.mu.Unlock()
		answer(w, r, batch)
	}))
	t.Cleanup(to.Close)
	return to
}

func (to *target) postsSoFar() [][]events.Event {
	to.mu.Lock()
	defer to.mu.Unlock()
	return to.posts
}

func status(code int) func(http.ResponseWriter, *http.Request, []events.Event) {
	return func(w http.ResponseWriter, _ *http.Request, _ []events.Event) { w.WriteHeader(code) }
}

// verdicts answers each event by f.
func verdicts(f func(e events.Event) seckill.Verdict) func(http.ResponseWriter, *http.Request, []events.Event) {
	return func(w http.ResponseWriter, _ *http.Request, batch []events.Event) {
		_, _ = io.WriteString(w, `{"results":[`)
		for i, e := range batch {
			if i > 0 {
				_, _ = io.WriteString(w, ",")
			}
			_, _ = fmt.Fprintf(w, `{"id":%q,"verdict":%q,"reason":"because"}`, e.ID, f(e))
		}
		_, _ = io.WriteString(w, "]}\n")
	}
}

func config(url string) natsbridge.Config {
	return natsbridge.Config{
		TargetURL: url, BatchMax: 256, PostsInFlight: 4, PostTimeout: 25 * time.Second,
		DrainTimeout: 10 * time.Second, AckWait: 30 * time.Second,
	}
}

// start runs a bridge until stop, which returns when it has ended.
func start(t *testing.T, c natsbridge.Config, from natsbridge.Source) (stop func()) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		natsbridge.New(c, from).Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	return stop
}

// run has a bridge answer all messages, then stops it.
func run(t *testing.T, c natsbridge.Config, all []*message) {
	t.Helper()
	stop := start(t, c, &source{left: all})
	eventually(t, "all are answered", func() bool {
		for _, m := range all {
			if answer, _, _, _ := m.result(); answer == "" {
				return false
			}
		}
		return true
	})
	stop()
}
