package serve

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

// Paths that the platforms ask.
const (
	healthPath = "/_/health"
	readyPath  = "/_/ready"
)

// Handler returns handler as Run serves it, with /_/health and /_/ready, for a
// server of the caller's own.
func Handler(cfg Config, handler http.Handler, checks ...Check) http.Handler {
	return newFront(cfg, handler, checks)
}

// front stands between the server and the function.
type front struct {
	handler     http.Handler
	inFlightMax int64
	inFlight    atomic.Int64
	draining    chan struct{} // closed when the server is about to stop
	readiness   *readiness
}

func newFront(cfg Config, handler http.Handler, checks []Check) *front {
	return &front{
		handler: handler, inFlightMax: int64(cfg.InFlightMax),
		draining: make(chan struct{}), readiness: newReadiness(checks),
	}
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case healthPath:
		f.answer(w, r, nil)
	case readyPath:
		f.answer(w, r, f.readiness.missing)
	default:
		f.work(w, r)
	}
}

// answer tells a platform whether the function lives or, if missing is given
// and names something, what it waits for.
func (f *front) answer(w http.ResponseWriter, r *http.Request, missing func(context.Context) string) {
	w.Header().Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, problem.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed"})
		return
	}
	select {
	case <-f.draining:
		problem.Write(w, problem.Problem{Status: http.StatusServiceUnavailable, Code: "draining"})
		return
	default:
	}
	if missing != nil {
		if names := missing(r.Context()); names != "" {
			problem.Write(w, problem.Problem{
				Status: http.StatusServiceUnavailable, Code: "not_ready", Detail: "waiting for " + names, RetryAfter: time.Second,
			})
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

// work passes the request on, unless there are too many already.
func (f *front) work(w http.ResponseWriter, r *http.Request) {
	seen := &response{ResponseWriter: w, front: f}
	defer seen.leave()
	if f.inFlight.Add(1) > f.inFlightMax {
		problem.Write(w, problem.Problem{
			Status: http.StatusTooManyRequests, Code: "too_many_requests",
			Detail: "too many requests at once; nothing was done", RetryAfter: time.Second,
		})
		return
	}
	defer seen.recovered(r)
	f.handler.ServeHTTP(seen, r)
}

// Release takes the request that w answers out of the count that InFlightMax
// bounds. A handler calls it before it only waits, for something to be pushed,
// say, and bounds by itself how many wait. Calling it again does nothing.
func Release(w http.ResponseWriter) {
	if seen := responseOf(w); seen != nil {
		seen.leave()
	}
}

// Draining returns a channel that is closed when the server of the request
// that w answers is about to stop: a handler that waits should end its answer
// then. It is nil if w is not of a Handler.
func Draining(w http.ResponseWriter) <-chan struct{} {
	if seen := responseOf(w); seen != nil {
		return seen.front.draining
	}
	return nil
}

// responseOf finds the response beneath the writers that a handler may have
// put around it.
func responseOf(w http.ResponseWriter) *response {
	for {
		if seen, ok := w.(*response); ok {
			return seen
		}
		around, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = around.Unwrap()
	}
}

// response remembers whether an answer was begun, and whether its request
// still counts as in flight.
type response struct {
	http.ResponseWriter
	front *front
	begun bool
	left  atomic.Bool
}

// leave takes the request out of the count, once.
func (w *response) leave() {
	if !w.left.Swap(true) {
		w.front.inFlight.Add(-1)
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	w.begun = w.begun || status >= http.StatusOK
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(b) //nolint:wrapcheck // it is the writer beneath
}

// Flush implements http.Flusher.
func (w *response) Flush() {
	w.begun = true
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the writer beneath.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// recovered turns a panic into "unknown"; an answer that was begun is cut off,
// so that nobody takes half of it for the whole.
func (w *response) recovered(r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint,err113 // a panic's value, compared as net/http does
		panic(cause)
	}
	slog.ErrorContext(r.Context(), "a handler panicked",
		"method", r.Method, "path", r.URL.Path, "panic", cause, "stack", string(debug.Stack()))
	if w.begun {
		panic(http.ErrAbortHandler)
	}
	problem.Write(w, problem.Of(seckill.ErrUnavailable))
}
