package natsbridge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	natsbridge "seckill/functions/nats-bridge"
	"seckill/shared/events"
)

func TestPostIsABatchWithTheSecret(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 1)
	to := newTarget(t, func(_ http.ResponseWriter, r *http.Request, _ []events.Event) { headers <- r.Header })
	c := config(to.URL)
	c.Secret = "0123456789abcdef"
	all := messages(3)
	run(t, c, all)
	header := <-headers
	if header.Get("Content-Type") != events.BatchContentType || header.Get("Authorization") != "Bearer 0123456789abcdef" {
		t.Errorf("posted with %v", header)
	}
	if header.Values("Idempotency-Key") != nil {
		t.Error("the transport's hint was sent")
	}
	posts := to.postsSoFar()
	if len(posts) != 1 || len(posts[0]) != 3 || posts[0][2].ID != "e2" || posts[0][2].Err != nil {
		t.Errorf("posted %v", posts)
	}
}

// What is no event never joins a batch; binary messages join it rewritten.
func TestOnlyEventsArePosted(t *testing.T) {
	t.Parallel()
	to := newTarget(t, status(200))
	var all []*message
	for _, data := range []string{"", "x", "{", "[]", "null", strings.Repeat("A", 1<<20), `{"a":1}`, "\xff"} {
		all = append(all, &message{id: "bad", data: []byte(data), delivered: 3}, &message{id: "early", data: []byte(data), delivered: 2})
	}
	for _, id := range []string{"ce-id", "Ce-Id", "CE-ID"} {
		all = append(all, &message{id: "good", data: []byte(`{}`), delivered: 1, header: map[string][]string{
			id: {id}, "ce-source": {"/s"}, "CE-type": {"t"}, "Ce-Specversion": {"1.0"}, "Content-Type": {"application/json"},
		}})
	}
	all = append(all, &message{id: "good", data: []byte(event("plain")), delivered: 1})
	run(t, config(to.URL), all)
	for _, m := range all {
		answer, delay, reason, _ := m.result()
		want := map[string]string{"bad": "park", "early": "nak", "good": "ack"}[m.id]
		if answer != want || (answer == "park") != (reason != "") || delay > time.Second {
			t.Errorf("%.20q is answered %s, delay %s, %q; want %s", m.data, answer, delay, reason, want)
		}
	}
	posts := to.postsSoFar()
	if len(posts) != 1 || len(posts[0]) != 4 {
		t.Fatalf("posted %v", posts)
	}
	for i, want := range []string{"ce-id", "Ce-Id", "CE-ID", "plain"} {
		if e := posts[0][i]; e.ID != want || e.Err != nil {
			t.Errorf("posted %+v, want id %s", e, want)
		}
	}
}

func TestBatchIsBoundedInEventsAndBytes(t *testing.T) {
	t.Parallel()
	to := newTarget(t, status(200))
	c := config(to.URL)
	c.BatchMax, c.PostsInFlight = 10, 1
	all := messages(25)
	for _, m := range all[:3] {
		m.data = []byte(strings.TrimSuffix(event(m.id), "}") + `,"data":"` + strings.Repeat("A", 600<<10) + `"}`)
	}
	run(t, c, all)
	var sizes []int
	for _, post := range to.postsSoFar() {
		sizes = append(sizes, len(post))
	}
	want := []int{1, 1, 8, 10, 5}
	if len(sizes) != len(want) {
		t.Fatalf("posts of %v, want %v", sizes, want)
	}
	for i := range want {
		if sizes[i] != want[i] {
			t.Fatalf("posts of %v, want %v", sizes, want)
		}
	}
}

// While a post is pending longer than a third of the ack wait, the queue is
// told so.
func TestLongPostIsKeptAlive(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	to := newTarget(t, func(_ http.ResponseWriter, r *http.Request, _ []events.Event) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	c := config(to.URL)
	c.AckWait, c.PostTimeout = 1500*time.Millisecond, 1400*time.Millisecond
	all := messages(1)
	stop := start(t, c, &source{left: all})
	eventually(t, "progress is told", func() bool {
		_, _, _, progress := all[0].result()
		return progress >= 2
	})
	close(release)
	eventually(t, "answered", func() bool {
		answer, _, _, _ := all[0].result()
		return answer == "ack"
	})
	stop()
}

func TestEndFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	to := newTarget(t, func(http.ResponseWriter, *http.Request, []events.Event) {
		close(arrived)
		<-release
	})
	all := messages(5)
	stop := start(t, config(to.URL), &source{left: all})
	<-arrived
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	close(release)
	<-ended
	for _, m := range all {
		if answer, _, _, _ := m.result(); answer != "ack" {
			t.Errorf("%s is answered %q", m.id, answer)
		}
	}
}

func TestEndGivesBackWhatTakesTooLong(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	to := newTarget(t, func(_ http.ResponseWriter, r *http.Request, _ []events.Event) {
		close(arrived)
		<-r.Context().Done()
	})
	c := config(to.URL)
	c.DrainTimeout = 50 * time.Millisecond
	all := messages(5)
	stop := start(t, c, &source{left: all})
	<-arrived
	stop()
	for _, m := range all {
		if answer, delay, _, _ := m.result(); answer != "nak" || delay != 0 {
			t.Errorf("%s is answered %q, delay %s", m.id, answer, delay)
		}
	}
}

func TestFailedFetchIsTriedAgain(t *testing.T) {
	t.Parallel()
	to := newTarget(t, status(200))
	all := messages(1)
	stop := start(t, config(to.URL), &source{left: all, err: errors.New("no broker")})
	eventually(t, "delivered", func() bool {
		answer, _, _, _ := all[0].result()
		return answer == "ack"
	})
	stop()
}

func TestConfigRefusesNonsense(t *testing.T) {
	t.Parallel()
	good := config("http://x")
	sink := good
	sink.TargetURL, sink.Sink = "", "https://y/z"
	for name, c := range map[string]natsbridge.Config{"target": good, "sink": sink} {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if sink.Target() != "https://y/z" {
		t.Errorf("target is %s", sink.Target())
	}
	for name, change := range map[string]func(*natsbridge.Config){
		"no target": func(c *natsbridge.Config) { c.TargetURL = "" },
		"no scheme": func(c *natsbridge.Config) { c.TargetURL = "order-consumer:8080" },
		"no host":   func(c *natsbridge.Config) { c.TargetURL = "http:///x" },
		"ftp":       func(c *natsbridge.Config) { c.TargetURL = "ftp://x" },
		"batch":     func(c *natsbridge.Config) { c.BatchMax = 1001 },
		"posts":     func(c *natsbridge.Config) { c.PostsInFlight = 0 },
		"timeout":   func(c *natsbridge.Config) { c.PostTimeout = c.AckWait },
		"ack wait":  func(c *natsbridge.Config) { c.AckWait = 0 },
		"drain":     func(c *natsbridge.Config) { c.DrainTimeout = -1 },
	} {
		c := good
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
