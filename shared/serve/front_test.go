package serve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func ask(t *testing.T, h http.Handler, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w
}

func TestHealthTouchesNothing(t *testing.T) {
	t.Parallel()
	touched := func(context.Context) error { t.Error("a check ran"); return nil }
	none := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
	h := Handler(config(), none, Check{Name: "redis", Ping: touched})
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405} {
		w := ask(t, h, method, healthPath)
		if w.Code != want || w.Header().Get("Cache-Control") != "no-store" || (w.Header().Get("Allow") == "GET, HEAD") != (want == 405) {
			t.Errorf("%s: %d %v", method, w.Code, w.Header())
		}
	}
}

func TestReadyFollowsTheChecks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis, mysql, pings := errors.New("away"), error(nil), 0
		h := Handler(config(), http.NotFoundHandler(),
			Check{Name: "redis", Ping: func(context.Context) error { pings++; return redis }},
			Check{Name: "mysql", Ping: func(context.Context) error { return mysql }})
		want := func(code int, waiting string) {
			t.Helper()
			w := ask(t, h, "GET", readyPath)
			if w.Code != code || !strings.Contains(w.Body.String(), waiting) || strings.Contains(w.Body.String(), "away") {
				t.Errorf("ready %d %s, want %d %s", w.Code, w.Body, code, waiting)
			}
		}
		want(503, "waiting for redis")
		redis = nil
		want(503, "waiting for redis") // as last seen
		time.Sleep(missingFor)
		want(200, "ok")
		redis, mysql = errors.New("away"), errors.New("away")
		pings = 0
		for range 100 {
			want(200, "ok") // as last seen
		}
		if pings != 0 {
			t.Errorf("%d pings for answers already known", pings)
		}
		time.Sleep(readyFor)
		want(503, "waiting for redis, mysql")
		redis, mysql = nil, nil
		time.Sleep(missingFor)
		want(200, "ok")
	})
}

func TestReadyDoesNotHangWithACheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		thaw, out := make(chan struct{}), atomic.Int64{}
		h := Handler(config(), http.NotFoundHandler(),
			Check{Name: "frozen", Ping: func(context.Context) error { out.Add(1); <-thaw; return nil }},
			Check{Name: "broken", Ping: func(context.Context) error { panic("x") }})
		for range 5 {
			start := time.Now()
			if w := ask(t, h, "GET", readyPath); w.Code != 503 || !strings.Contains(w.Body.String(), "frozen, broken") {
				t.Errorf("ready %d %s", w.Code, w.Body)
			}
			if took := time.Since(start); took > pingMax {
				t.Errorf("it took %s", took)
			}
			time.Sleep(time.Second)
		}
		if got := out.Load(); got != 1 {
			t.Errorf("%d pings are out at once", got)
		}
		close(thaw)
	})
}

func TestTooManyRequestsAreShed(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.InFlightMax = 2
	gate, entered := make(chan struct{}), make(chan struct{}, 10)
	h := Handler(cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			Release(w)
			Release(w)
		}
		entered <- struct{}{}
		<-gate
	}))
	codes := make(chan int, 10)
	enter := func(path string) {
		go func() { codes <- ask(t, h, "POST", path).Code }()
		<-entered
	}
	enter("/")
	for range 3 {
		enter("/wait") // these only wait: they take no place
	}
	enter("/")
	w := ask(t, h, "POST", "/")
	if w.Code != 429 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":"too_many_requests"`) {
		t.Errorf("the third at work got %d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := ask(t, h, "GET", healthPath); w.Code != 200 {
		t.Errorf("health %d under load", w.Code)
	}
	close(gate)
	for range 5 {
		if got := <-codes; got != 200 {
			t.Errorf("a request in flight got %d", got)
		}
	}
	if w := ask(t, h, "POST", "/"); w.Code != 200 {
		t.Errorf("after the rush: %d", w.Code)
	}
}

func TestPanicIsUnknownNotAnAnswer(t *testing.T) {
	t.Parallel()
	cfg := config()
	cfg.InFlightMax = 1
	srv := httptest.NewServer(Handler(cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/begun":
			_, _ = w.Write([]byte("half"))
			_ = http.NewResponseController(w).Flush()
			panic("x")
		case "/abort":
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("ETag", "x")
		panic("x")
	})))
	t.Cleanup(srv.Close)
	for path, want := range map[string]int{"/": 503, "/abort": 0, "/begun": 200} {
		for range 2 { // the second time it would be 429 if a place were lost
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := srv.Client().Do(r)
			if want == 0 {
				if err == nil {
					t.Errorf("%s: answered %d", path, resp.StatusCode)
				}
				continue
			}
			if err != nil || resp.StatusCode != want {
				t.Fatalf("%s: %v", path, err)
			}
			err = resp.Write(&strings.Builder{})
			if whole := err == nil; whole != (want == 503) {
				t.Errorf("%s: the answer's end: %v", path, err)
			}
			_ = resp.Body.Close()
		}
	}
}

func TestStreamsReachTheWriterBeneath(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Handler(config(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		_, plain := w.(http.Flusher)
		if err := errors.Join(c.SetWriteDeadline(time.Now().Add(time.Hour)), c.Flush()); err != nil || !plain {
			t.Errorf("%v; http.Flusher %v", err, plain)
		}
	})))
	t.Cleanup(srv.Close)
	if got := status(t, &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (c net.Conn, err error) {
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	}}}, "/"); got != 200 {
		t.Errorf("status %d", got)
	}
}

func TestOutsideARequestThereIsNothingToRelease(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Release(w)
	if Draining(w) != nil {
		t.Error("a server is draining that is none")
	}
}
