package drive_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/scripts/load/drive"
	"seckill/shared/identity"
)

const kindDone = drive.Kind(0)

func newClient(t *testing.T, base string) *drive.Client {
	t.Helper()
	client, err := drive.NewClient(base, 4, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestTokensProveTheirBuyer(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef0123456789abcdef"
	verifier, err := identity.New(t.Context(), identity.Config{HMACSecret: secret})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		buyer, err := verifier.Buyer(r)
		if err != nil {
			t.Error(err)
		}
		got <- buyer
	}))
	t.Cleanup(srv.Close)
	buyers := &drive.Buyers{Prefix: "run7-", Secret: []byte(secret), Expires: time.Now().Add(time.Hour)}
	session := newClient(t, srv.URL).NewSession(buyers)
	for _, n := range []int64{0, 9, 1_000_000} {
		if _, err := session.Do(&drive.Call{Method: http.MethodGet, Path: "/", Buyer: n}); err != nil {
			t.Fatal(err)
		}
		if buyer := <-got; buyer != buyers.Name(n) {
			t.Errorf("token %d is of %q, want %q", n, buyer, buyers.Name(n))
		}
	}
}

func TestCallIsSentWhole(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 2)
		_, _ = r.Body.Read(body)
		w.Header().Set("Seen", r.Method+" "+r.URL.Path+" "+r.Header.Get("Prefer")+" "+r.Header.Get("Content-Type")+" "+string(body))
		w.WriteHeader(http.StatusAccepted)
		for range 3 { // chunked
			_, _ = w.Write([]byte("part "))
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(srv.Close)
	session := newClient(t, srv.URL+"/below/").NewSession(nil)
	status, err := session.Do(&drive.Call{
		Method: http.MethodPost, Path: "/x", Buyer: drive.Nobody,
		Headers: [][2]string{{"Prefer", "wait=3"}}, Body: []byte("{}"),
	})
	if err != nil || status != http.StatusAccepted {
		t.Fatal(status, err)
	}
	if seen := session.Header("Seen"); seen != "POST /below/x wait=3 application/json {}" {
		t.Errorf("the service saw %q", seen)
	}
	if body := string(session.Body()); body != "part part part " {
		t.Errorf("body %q", body)
	}
	srv.CloseClientConnections()
	srv.Close()
	if status, err := session.Do(&drive.Call{Method: http.MethodGet, Path: "/", Buyer: drive.Nobody}); err == nil {
		t.Errorf("a service that is gone answered %d", status)
	}
}

// A stalled service is not asked less: those who could not be sent wait from
// their planned time on, and that is what is recorded.
func TestOpenModelCountsTheQueue(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	first := make(chan struct{})
	var once sync.Once
	work := func(*drive.Session, int64) drive.Outcome {
		once.Do(func() { close(first) })
		<-open
		return drive.Outcome{Kind: kindDone}
	}
	rec := drive.NewRecorder("done")
	start := time.Now()
	var stalled time.Duration
	go func() {
		<-first
		stalled = time.Since(start)
		close(open)
	}()
	plan := drive.Plan{Open: true, Count: 50, Conns: 2, Start: start}
	drive.Run(t.Context(), plan, func() *drive.Session { return nil }, rec, work)
	rec.Cut()
	total := rec.Total(kindDone)
	if total.TotalCount() != 50 {
		t.Errorf("%d of 50 arrivals recorded", total.TotalCount())
	}
	// The histogram keeps two digits.
	if least := time.Duration(total.Min()) * time.Microsecond; least < stalled*98/100-time.Microsecond {
		t.Errorf("an arrival took %s although the service stalled for %s", least, stalled)
	}
}

func TestWhoAsksAgainIsRecordedOnce(t *testing.T) {
	t.Parallel()
	const people, tries = 20, 3
	var asked [people]atomic.Int64
	work := func(_ *drive.Session, n int64) drive.Outcome {
		try := asked[n].Add(1)
		if n%2 == 0 && try == 2 {
			return drive.Outcome{Kind: 1}
		}
		return drive.Outcome{Kind: 0, Again: time.Millisecond}
	}
	for name, open := range map[string]bool{"open": true, "closed": false} {
		for i := range asked {
			asked[i].Store(0)
		}
		rec := drive.NewRecorder("failed", "done")
		plan := drive.Plan{Open: open, Count: people, Conns: 3, TriesMax: tries}
		drive.Run(t.Context(), plan, func() *drive.Session { return nil }, rec, work)
		rec.Cut()
		if failed, done := rec.Total(0).TotalCount(), rec.Total(1).TotalCount(); failed != people/2 || done != people/2 {
			t.Errorf("%s: %d failed, %d done", name, failed, done)
		}
		for n := range asked {
			if want := int64(2 + n%2); asked[n].Load() != want {
				t.Errorf("%s: arrival %d tried %d times, want %d", name, n, asked[n].Load(), want)
			}
		}
	}
}

func TestRunEndsWithItsPlanOrContext(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		plan       drive.Plan
		cancelAt   int64
		want, upTo int64
	}{
		"time":    {plan: drive.Plan{Open: true, Rate: 10_000, For: 20 * time.Millisecond, Conns: 2}, want: 1, upTo: 2000},
		"count":   {plan: drive.Plan{Count: 5, Conns: 2}, want: 5, upTo: 5},
		"context": {plan: drive.Plan{For: time.Hour, Conns: 2}, cancelAt: 100, want: 100, upTo: 101},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var n atomic.Int64
			work := func(*drive.Session, int64) drive.Outcome {
				if n.Add(1) == test.cancelAt {
					cancel()
				}
				return drive.Outcome{}
			}
			rec := drive.NewRecorder("done")
			drive.Run(ctx, test.plan, func() *drive.Session { return nil }, rec, work)
			rec.Cut()
			if rec.Total(0).TotalCount() != n.Load() || n.Load() < test.want || n.Load() > test.upTo {
				t.Errorf("%d arrivals, %d recorded", n.Load(), rec.Total(0).TotalCount())
			}
		})
	}
}
