// Package problem answers requests that were not fulfilled with RFC 9457
// problem details.
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// typePrefix makes a code a URI; there is nothing to be read at it.
const typePrefix = "urn:seckill:problem:"

// Problem is one answer. Code is its stable name and needed; the other fields
// are for what the code needs.
type Problem struct {
	Type   string `json:"type"`  // default urn:seckill:problem:CODE
	Title  string `json:"title"` // default the status as text
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
	// Field is the first unacceptable field of the request.
	Field string `json:"field,omitempty"`
	// Claim is the id of the claim this is about.
	Claim string `json:"claim,omitempty"`
	// OpensAt is when the sale opens.
	OpensAt *time.Time `json:"opens_at,omitempty"`
	// RetryAfter becomes the header of that name, in whole seconds, rounded
	// up; zero sends none.
	RetryAfter time.Duration `json:"-"`
}

// Write answers with p. The answer is not to be cached, whatever the handler
// had prepared before it failed.
func Write(w http.ResponseWriter, p Problem) {
	if p.Type == "" {
		p.Type = typePrefix + p.Code
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	header := w.Header()
	for _, name := range []string{"Content-Length", "Content-Encoding", "Etag", "Last-Modified", "Expires"} {
		header.Del(name)
	}
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if p.RetryAfter > 0 {
		seconds := (p.RetryAfter + time.Second - 1) / time.Second
		header.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	if p.Status == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a client that is gone needs no answer
}

// Routes serves mux and answers the paths and methods that it does not know
// with problems, 404 not_found and 405 method_not_allowed.
func Routes(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unknown, pattern := mux.Handler(r)
		if pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		heard := &refusal{header: http.Header{}}
		unknown.ServeHTTP(heard, r)
		if heard.status == http.StatusMethodNotAllowed {
			w.Header().Set("Allow", heard.header.Get("Allow"))
			Write(w, Problem{Status: heard.status, Code: "method_not_allowed"})
			return
		}
		Write(w, Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is no such path"})
	})
}

// refusal hears out what a mux says of a request that it has no handler for.
type refusal struct {
	header http.Header
	status int
}

func (r *refusal) Header() http.Header         { return r.header }
func (r *refusal) WriteHeader(status int)      { r.status = status }
func (r *refusal) Write(b []byte) (int, error) { return len(b), nil }
