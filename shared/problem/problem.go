// Package problem answers requests that were not fulfilled with RFC 9457
// problem details.
package problem

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
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

func (p Problem) withDefaults() Problem {
	if p.Type == "" {
		p.Type = typePrefix + p.Code
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	return p
}

// Write answers with p. The answer is not to be cached, whatever the handler
// had prepared before it failed.
func Write(w http.ResponseWriter, p Problem) {
	p = p.withDefaults()
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

// Prepared is a problem that was written once and is answered many times.
type Prepared struct {
	status int
	body   []byte
}

// The values of the headers of every problem, shared by the answers; nobody
// changes a header's values in place.
var (
	typeValue    = []string{"application/problem+json"}
	noStoreValue = []string{"no-store"}
	nosniffValue = []string{"nosniff"}
)

// Prepare returns p ready to be answered; p must have no RetryAfter.
func Prepare(p Problem) Prepared {
	p = p.withDefaults()
	body, err := json.Marshal(p)
	if err != nil || p.RetryAfter != 0 {
		panic("a problem is prepared from constants")
	}
	return Prepared{status: p.Status, body: append(body, '\n')}
}

// Write answers with the problem, by a handler that has prepared nothing else.
func (p Prepared) Write(w http.ResponseWriter) {
	header := w.Header()
	header["Content-Type"], header["Cache-Control"], header["X-Content-Type-Options"] = typeValue, noStoreValue, nosniffValue
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // a client that is gone needs no answer
}

// methods are those that a pattern of ours may have.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Routes has mux answer the paths and methods that it does not know with
// problems, 404 not_found and 405 method_not_allowed. The pattern / of mux
// must be free.
func Routes(mux *http.ServeMux) http.Handler {
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, method := range methods {
			other := &http.Request{Method: method, URL: r.URL, Host: r.Host}
			if _, pattern := mux.Handler(other); pattern != "/" && pattern != "" {
				allowed = append(allowed, method)
				if method == http.MethodGet {
					allowed = append(allowed, http.MethodHead)
				}
			}
		}
		if len(allowed) > 0 {
			w.Header().Set("Allow", strings.Join(allowed, ", "))
			Write(w, Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed"})
			return
		}
		Write(w, Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "there is no such path"})
	})
	return mux
}
