package natsbridge_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

// batchMessage carries events with these ids, or bytes that are none.
func batchMessage(delivered int, ids ...string) *message {
	var elements []string
	for _, id := range ids {
		if strings.HasPrefix(id, "{") {
			elements = append(elements, id)
		} else {
			elements = append(elements, event(id))
		}
	}
	return &message{
		id: "batch", delivered: delivered, data: []byte("[" + strings.Join(elements, ",") + "]"),
		header: map[string][]string{"content-type": {events.BatchContentType}},
	}
}

// A message of several events is answered once, when all of them have their
// results: as the one that needs most.
func TestMessageIsAnsweredByAllOfItsEvents(t *testing.T) {
	t.Parallel()
	noRoom := batchMessage(3, "good", "poison")
	noRoom.parkErr = errors.New("no room")
	for name, test := range map[string]struct {
		message *message
		answer  string
		delay   [2]time.Duration
	}{
		"all are done":              {batchMessage(1, "good", "good", "good"), "ack", [2]time.Duration{}},
		"one comes again":           {batchMessage(1, "good", "retry", "good"), "nak", [2]time.Duration{1, time.Second}},
		"one is poison, early":      {batchMessage(2, "poison", "good"), "nak", [2]time.Duration{1, time.Second}},
		"two are poison":            {batchMessage(3, "poison", "good", "poison"), "part 0 poison, part 2 poison, ack", [2]time.Duration{}},
		"all are poison":            {batchMessage(3, "poison", "poison"), "part 0 poison, part 1 poison, ack", [2]time.Duration{}},
		"poison waits for the rest": {batchMessage(3, "poison", "retry"), "nak", [2]time.Duration{1, 2 * time.Second}},
		"one is no event":           {batchMessage(3, "good", `{"a":1}`, "good"), "part 1 , ack", [2]time.Duration{}},
		"none is an event":          {batchMessage(3, `{}`, `{"a":1}`), "part 0 , part 1 , ack", [2]time.Duration{}},
		"one alone":                 {batchMessage(3, "poison"), "park", [2]time.Duration{}},
		"no room to park":           {noRoom, "nak", [2]time.Duration{10 * time.Second, 31 * time.Second}},
		"no events":                 {batchMessage(3), "park", [2]time.Duration{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := newTarget(t, verdicts(func(e events.Event) seckill.Verdict {
				return map[string]seckill.Verdict{"good": seckill.VerdictApplied, "retry": seckill.VerdictRetry, "poison": seckill.VerdictPoison}[e.ID]
			}))
			run(t, config(to.URL), []*message{test.message})
			answer, delay, _, _ := test.message.result()
			if answer != test.answer || delay < test.delay[0] || delay > test.delay[1] {
				t.Errorf("answered %q, delay %s; want %q and %s to %s", answer, delay, test.answer, test.delay[0], test.delay[1])
			}
		})
	}
}

// A message with more events than a post may have is answered when the last
// of its posts is; a batch that is refused is cut down to the bad one.
func TestMessageMayNeedSeveralPosts(t *testing.T) {
	t.Parallel()
	to := newTarget(t, func(w http.ResponseWriter, _ *http.Request, batch []events.Event) {
		for _, e := range batch {
			if e.ID == "e17" {
				w.WriteHeader(http.StatusUnprocessableEntity)
			}
		}
	})
	c := config(to.URL)
	c.BatchMax, c.PostsInFlight = 10, 1
	var ids []string
	for i := range 25 {
		ids = append(ids, fmt.Sprint("e", i))
	}
	all := []*message{batchMessage(3, ids...), batchMessage(1, "x", "y")}
	run(t, c, all)
	if answer, _, _, _ := all[0].result(); answer != "part 17 e17, ack" {
		t.Errorf("answered %q", answer)
	}
	if answer, _, _, _ := all[1].result(); answer != "ack" {
		t.Errorf("the next is answered %q", answer)
	}
	for _, post := range to.postsSoFar() {
		if len(post) > 10 {
			t.Errorf("a post has %d events", len(post))
		}
	}
}

// Fetches follow how many events a message has, so that a post is full and no
// worker sits on what others could deliver. They begin small and at most double,
// since nobody knows what the next messages hold.
func TestFetchIsSizedByEvents(t *testing.T) {
	t.Parallel()
	to := newTarget(t, func(http.ResponseWriter, *http.Request, []events.Event) {})
	c := config(to.URL)
	c.BatchMax, c.PostsInFlight = 60, 1
	all := messages(16 + 32 + 60)
	for range 4 {
		all = append(all, batchMessage(1, "a", "b", "c", "d", "e"))
	}
	from := &source{left: all}
	stop := start(t, c, from)
	want := []int{16, 32, 60, 60, 12}
	eventually(t, "all are fetched", func() bool { return len(from.sizes()) >= len(want) })
	stop()
	if sizes := from.sizes()[:len(want)]; !slices.Equal(sizes, want) {
		t.Errorf("fetches of %v, want %v", sizes, want)
	}
}
