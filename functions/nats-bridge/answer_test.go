package natsbridge_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

// What each HTTP answer to a batch means for all of its events.
func TestStatusDecidesTheAnswer(t *testing.T) {
	t.Parallel()
	tests := map[int]string{
		200: "ack", 202: "ack", 204: "ack",
		301: "nak", 307: "nak", 401: "nak", 403: "nak", 404: "nak", 405: "nak", 408: "nak", 409: "nak", 410: "nak",
		425: "nak", 429: "nak", 500: "nak", 502: "nak", 503: "nak", 504: "nak",
	}
	for code, want := range tests {
		t.Run(http.StatusText(code), func(t *testing.T) {
			t.Parallel()
			to := newTarget(t, func(w http.ResponseWriter, _ *http.Request, _ []events.Event) {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(code)
			})
			all := messages(3)
			all[2].delivered = 7 // often delivered is not poison
			run(t, config(to.URL), all)
			for _, m := range all {
				answer, delay, _, _ := m.result()
				if answer != want || (want == "nak") != (delay > 0) || delay > 31*time.Second {
					t.Errorf("%s is answered %s, delay %s; want %s", m.id, answer, delay, want)
				}
			}
			if n := len(to.postsSoFar()); n != 1 {
				t.Errorf("%d posts, want 1", n)
			}
		})
	}
}

// A body that is not understood says nothing, whatever the status.
func TestAnswerThatIsNotUnderstoodIsRetried(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"text": "OK", "null": "null", "empty object": "{}", "cut off": `{"results":[{"id":"e0"`,
		"too few":  `{"results":[{"id":"e0","verdict":"applied"}]}`,
		"swapped":  `{"results":[{"id":"e1","verdict":"applied"},{"id":"e0","verdict":"applied"}]}`,
		"too long": `{"results":[{"id":"e0","verdict":"applied"},{"id":"e1","verdict":"applied"}]}` + strings.Repeat(" ", 2<<20),
		"unknown":  `{"results":[{"id":"e0","verdict":"fine"},{"id":"e1","verdict":""}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := newTarget(t, func(w http.ResponseWriter, _ *http.Request, _ []events.Event) { _, _ = io.WriteString(w, body) })
			all := messages(2)
			run(t, config(to.URL), all)
			for _, m := range all {
				if answer, delay, _, _ := m.result(); answer != "nak" || delay <= 0 {
					t.Errorf("%s is answered %s, delay %s", m.id, answer, delay)
				}
			}
		})
	}
}

func TestUnreachableTargetIsRetried(t *testing.T) {
	t.Parallel()
	to := newTarget(t, status(200))
	to.Close()
	all := messages(2)
	run(t, config(to.URL), all)
	for _, m := range all {
		if answer, delay, _, _ := m.result(); answer != "nak" || delay <= 0 {
			t.Errorf("%s is answered %s, delay %s", m.id, answer, delay)
		}
	}
}

func TestSlowTargetIsRetriedAfterItsTime(t *testing.T) {
	t.Parallel()
	to := newTarget(t, func(_ http.ResponseWriter, r *http.Request, _ []events.Event) { <-r.Context().Done() })
	c := config(to.URL)
	c.PostTimeout = 50 * time.Millisecond
	all := messages(2)
	run(t, c, all)
	if answer, _, _, _ := all[0].result(); answer != "nak" {
		t.Errorf("answered %s", answer)
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	t.Parallel()
	for header, bounds := range map[string][2]time.Duration{
		"7":           {7 * time.Second, 11 * time.Second},
		"99999999999": {30 * time.Second, 46 * time.Second},
		"-5":          {0, time.Second},
		"soon":        {0, time.Second},
		time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat): {15 * time.Second, 31 * time.Second},
	} {
		to := newTarget(t, func(w http.ResponseWriter, _ *http.Request, _ []events.Event) {
			w.Header().Set("Retry-After", header)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		all := messages(1)
		run(t, config(to.URL), all)
		if _, delay, _, _ := all[0].result(); delay < bounds[0] || delay > bounds[1] {
			t.Errorf("%q: delay %s, want %s to %s", header, delay, bounds[0], bounds[1])
		}
	}
}

func TestEachVerdictDecidesItsEvent(t *testing.T) {
	t.Parallel()
	says := map[string]seckill.Verdict{
		"e0": seckill.VerdictApplied, "e1": seckill.VerdictDuplicate, "e2": seckill.VerdictRejected, "e3": seckill.VerdictIgnored,
		"e4": seckill.VerdictRetry, "e5": seckill.VerdictPoison, "e6": seckill.VerdictPoison,
	}
	want := []string{"ack", "ack", "ack", "ack", "nak", "nak", "park"}
	to := newTarget(t, verdicts(func(e events.Event) seckill.Verdict { return says[e.ID] }))
	all := messages(len(want))
	all[6].delivered = 3
	run(t, config(to.URL), all)
	for i, m := range all {
		answer, delay, reason, _ := m.result()
		if answer != want[i] || (answer == "nak") != (delay > 0) {
			t.Errorf("%s is answered %s, delay %s; want %s", says[m.id], answer, delay, want[i])
		}
		if answer == "park" && reason != "because" {
			t.Errorf("parked because %q", reason)
		}
	}
}

// What is said of another event decides nothing, however bad it is: parking the
// wrong event would take a good claim out of the flow.
func TestResultOfAnotherEventParksNothing(t *testing.T) {
	t.Parallel()
	to := newTarget(t, func(w http.ResponseWriter, _ *http.Request, _ []events.Event) {
		_, _ = io.WriteString(w, `{"results":[{"id":"e1","verdict":"poison"},{"id":"e1","verdict":"applied"}]}`)
	})
	all := messages(2)
	all[0].delivered, all[1].delivered = 3, 3
	run(t, config(to.URL), all)
	for i, want := range []string{"nak", "ack"} {
		if answer, _, _, _ := all[i].result(); answer != want {
			t.Errorf("%s is answered %q, want %q", all[i].id, answer, want)
		}
	}
}

// A batch refused as a whole is cut until the bad events are alone; the good
// ones are delivered in the same go.
func TestRefusedBatchIsCutToItsBadEvents(t *testing.T) {
	t.Parallel()
	for _, code := range []int{400, 413, 415, 422} {
		bad := map[string]bool{"e0": true, "e41": true, "e99": true}
		to := newTarget(t, func(w http.ResponseWriter, _ *http.Request, batch []events.Event) {
			for _, e := range batch {
				if bad[e.ID] {
					w.WriteHeader(code)
					_, _ = io.WriteString(w, "bad "+e.ID)
					return
				}
			}
		})
		all := messages(100)
		all[99].delivered = 3
		run(t, config(to.URL), all)
		for i, m := range all {
			answer, delay, reason, _ := m.result()
			want := "ack"
			switch i {
			case 0, 41:
				want = "nak"
			case 99:
				want = "park"
			}
			if answer != want || delay > time.Second || want == "park" && !strings.Contains(reason, "bad e99") {
				t.Errorf("%d: %s is answered %s, delay %s, %q; want %s", code, m.id, answer, delay, reason, want)
			}
		}
		if n := len(to.postsSoFar()); n > 3*2*8 {
			t.Errorf("%d: %d posts", code, n)
		}
	}
}

// When poison cannot be parked it must not come back in a hot loop.
func TestPoisonThatCannotBeParkedWaitsLong(t *testing.T) {
	t.Parallel()
	to := newTarget(t, status(422))
	all := messages(1)
	all[0].delivered, all[0].parkErr = 3, errors.New("no room")
	run(t, config(to.URL), all)
	if answer, delay, _, _ := all[0].result(); answer != "nak" || delay < 10*time.Second {
		t.Errorf("answered %s, delay %s", answer, delay)
	}
}
