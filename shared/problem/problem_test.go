package problem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

func TestOfGivesEachErrorItsAnswer(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.0.0.7:3306: password hunter2")
	for _, c := range []struct {
		err    error
		status int
		code   string
		retry  time.Duration
	}{
		{seckill.ErrInvalid, 400, "invalid", 0},
		{&seckill.FieldError{Field: "quantity", Detail: "must be 1"}, 400, "invalid", 0},
		{problem.ErrUnauthenticated, 401, "unauthenticated", 0},
		{seckill.ErrNotFound, 404, "not_found", 0},
		{seckill.ErrPending, 404, "order_pending", time.Second},
		{seckill.ErrConflict, 409, "conflict", 0},
		{problem.ErrTooLarge, 413, "too_large", 0},
		{&http.MaxBytesError{Limit: 3}, 413, "too_large", 0},
		{problem.ErrContentType, 415, "unsupported_media_type", 0},
		{seckill.ErrKeyReused, 422, "key_reused", 0},
		{seckill.ErrUnavailable, 503, "unavailable", time.Second},
		{seckill.ErrSuperseded, 503, "unavailable", time.Second},
		{context.DeadlineExceeded, 503, "unavailable", time.Second},
		{secret, 503, "unavailable", time.Second},
	} {
		for _, err := range []error{c.err, fmt.Errorf("claim c1 of s1: %w", c.err), errors.Join(errors.New("x"), c.err)} {
			p := problem.Of(err)
			if p.Status != c.status || p.Code != c.code || p.RetryAfter != c.retry {
				t.Errorf("Of(%v) = %d %s %s, want %d %s %s", err, p.Status, p.Code, p.RetryAfter, c.status, c.code, c.retry)
			}
			if strings.Contains(p.Detail, "hunter2") || strings.Contains(p.Detail, "c1") {
				t.Errorf("Of(%v) lets out %q", err, p.Detail)
			}
		}
	}
	p := problem.Of(fmt.Errorf("x: %w", &seckill.FieldError{Field: "quantity", Detail: "must be 1"}))
	if p.Field != "quantity" || p.Detail != "must be 1" {
		t.Errorf("the field is %q, %q", p.Field, p.Detail)
	}
}

func TestWriteIsAProblemDocument(t *testing.T) {
	t.Parallel()
	opens := time.Date(2026, 11, 11, 20, 0, 0, 0, time.FixedZone("", 8*3600))
	w := httptest.NewRecorder()
	for name, value := range map[string]string{"ETag": `"1"`, "Content-Encoding": "gzip", "Cache-Control": "max-age=60"} {
		w.Header().Set(name, value)
	}
	problem.Write(w, problem.Problem{Status: 425, Code: "not_open", Detail: "wait", OpensAt: &opens, RetryAfter: 1100 * time.Millisecond})
	wantHeader(t, w, map[string]string{
		"Content-Type": "application/problem+json", "Cache-Control": "no-store", "Retry-After": "2",
		"Etag": "", "Content-Encoding": "", "WWW-Authenticate": "",
	})
	want := map[string]any{
		"type": "urn:seckill:problem:not_open", "title": "Too Early", "status": 425.0, "code": "not_open",
		"detail": "wait", "opens_at": "2026-11-11T20:00:00+08:00",
	}
	wantBody(t, w, 425, want)
}

func TestWriteLeavesOutWhatIsNotSet(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	problem.Write(w, problem.Problem{Status: 401, Code: "unauthenticated", Type: "about:blank", Title: "Who?"})
	wantHeader(t, w, map[string]string{"Retry-After": "", "WWW-Authenticate": "Bearer"})
	wantBody(t, w, 401, map[string]any{"type": "about:blank", "title": "Who?", "status": 401.0, "code": "unauthenticated"})
}

func TestRoutesAnswersWhatTheMuxDoesNotKnow(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("cancelled " + r.PathValue("id")))
	})
	h := problem.Routes(mux)
	ask := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
		return w
	}
	if w := ask("POST", "/orders/o1/cancel"); w.Code != 200 || w.Body.String() != "cancelled o1" {
		t.Errorf("a known path answers %d %s", w.Code, w.Body)
	}
	w := ask("GET", "/orders/o1/cancel")
	wantHeader(t, w, map[string]string{"Allow": "POST"})
	wantBody(t, w, 405, map[string]any{
		"type": "urn:seckill:problem:method_not_allowed", "title": "Method Not Allowed", "status": 405.0, "code": "method_not_allowed",
	})
	wantBody(t, ask("GET", "/nothing"), 404, map[string]any{
		"type": "urn:seckill:problem:not_found", "title": "Not Found", "status": 404.0, "code": "not_found", "detail": "there is no such path",
	})
}

func wantHeader(t *testing.T, w *httptest.ResponseRecorder, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got := w.Header().Get(name); got != value {
			t.Errorf("%s: %q, want %q", name, got, value)
		}
	}
}

func wantBody(t *testing.T, w *httptest.ResponseRecorder, status int, want map[string]any) {
	t.Helper()
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != status {
		t.Fatalf("status %d (want %d), body %q: %v", w.Code, status, w.Body, err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
