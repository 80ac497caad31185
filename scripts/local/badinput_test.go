package main_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/shared/audit"
	"seckill/shared/events"
	"seckill/shared/identity"
)

// raw sends a request as it is given and returns the status and the problem.
func (s *system) raw(method, path string, header map[string][]string, body io.Reader) (int, map[string]any) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, body)
	must(s.t, err)
	for name, values := range header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	response, err := s.client.Do(r)
	if err != nil {
		return 0, nil // the server may close a connection whose body it does not read
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	data, err := io.ReadAll(response.Body)
	must(s.t, err)
	var document map[string]any
	if json.Unmarshal(data, &document) != nil {
		document = map[string]any{"text": string(data)}
	}
	return response.StatusCode, document
}

// claimBodies are no claims: group by group numbers, keys, ends, shapes, codings.
func claimBodies() []string {
	return []string{
		`{"quantity":-5}`, `{"quantity":0}`, `{"quantity":-0}`, `{"quantity":1.5}`, `{"quantity":1e0}`, `{"quantity":"1"}`, `{"quantity":null}`,
		`{"quantity":true}`, `{"quantity":[1]}`, `{}`, `{"quantity":1e400}`, `{"quantity":2147483648}`, `{"quantity":9223372036854775808}`, `{"quantity":101}`,
		`{"quantity":1,"quantity":1}`, `{"quantity":1,"QUANTITY":-5}`, `{"QUANTITY":1}`, `{"quantity":1,"buyer":"b2"}`, `{"quantity":1,"user_id":"b2"}`,
		`{"quantity":1}` + strings.Repeat(" ", 10<<20), `{"quantity":1}{"quantity":1}`, `{"quantity":1}garbage`,
		``, `null`, `[]`, `"x"`, `{`, strings.Repeat("[", 100_000), strings.Repeat("A", 1<<20),
		"\ufeff" + `{"quantity":1}`, "\xff\xfe{\x00\"\x00", "{\"quantity\":1,\"\xff\":2}",
	}
}

func (s *system) token(buyer string) string {
	s.t.Helper()
	token, err := identity.Sign(s.secret, buyer, time.Hour)
	must(s.t, err)
	return token
}

// unsigned returns a token of buyer with another header and signature.
func unsigned(buyer, header string, key []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + encode(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, buyer, time.Now().Add(time.Hour).Unix()))
	if key == nil {
		return text + "."
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// TestBadInputEndToEnd: bad input of every kind gets a clear 4xx problem and
// changes nothing.
func TestBadInputEndToEnd(t *testing.T) {
	t.Parallel()
	s := oneProcess(t)
	s.waitOpen()
	good := map[string][]string{"Authorization": {"Bearer " + s.token("b1")}, "Content-Type": {"application/json"}}
	with := func(name string, values ...string) map[string][]string {
		h := map[string][]string{name: values}
		for n, v := range good {
			if _, set := h[n]; !set {
				h[n] = v
			}
		}
		return h
	}
	check := func(what string, code int, d map[string]any) {
		t.Helper()
		if code == 0 && strings.Contains(what, "large") {
			return // refused by closing the connection while the body was being sent
		}
		if code < 400 || code > 499 || d["code"] == nil || d["title"] == nil || d["status"] != float64(code) {
			t.Errorf("%s: %d %v", what, code, d)
		}
	}
	const claims = "/sales/demo/claims"
	for _, body := range claimBodies() {
		what := fmt.Sprintf("body of %d bytes %.40q", len(body), body)
		if len(body) > 1<<19 {
			what = "large " + what
		}
		code, d := s.raw(http.MethodPost, claims, good, strings.NewReader(body))
		check(what, code, d)
	}
	one := func() io.Reader { return strings.NewReader(`{"quantity":1}`) }
	for what, header := range map[string]map[string][]string{
		"text":            with("Content-Type", "text/plain"),
		"no type":         with("Content-Type"),
		"gzip":            with("Content-Encoding", "gzip"),
		"utf-16":          with("Content-Type", "application/json; charset=utf-16"),
		"no token":        with("Authorization"),
		"two tokens":      with("Authorization", "Bearer "+s.token("b1"), "Bearer "+s.token("b2")),
		"alg none":        with("Authorization", "Bearer "+unsigned("b1", `{"alg":"none"}`, nil)),
		"another's key":   with("Authorization", "Bearer "+unsigned("b1", `{"alg":"HS256"}`, []byte("another secret"))),
		"odd buyer":       with("Authorization", "Bearer "+unsigned("a}{b", `{"alg":"HS256"}`, []byte(s.secret))),
		"long buyer":      with("Authorization", "Bearer "+unsigned(strings.Repeat("b", 5000), `{"alg":"HS256"}`, []byte(s.secret))),
		"two keys":        with("Idempotency-Key", "a", "b"),
		"long key":        with("Idempotency-Key", strings.Repeat("k", 300)),
		"identity header": {"X-User-Id": {"b2"}, "X-Role": {"admin"}, "X-Internal": {"1"}, "Content-Type": {"application/json"}},
	} {
		code, d := s.raw(http.MethodPost, claims, header, one())
		check(what, code, d)
	}
	for _, path := range []string{
		"/sales//claims", "/sales/no-such-sale/claims", "/sales/a%7D%7Bb/claims", "/sales/%2a/claims", "/sales/A/claims", "/sales/" + strings.Repeat("s", 10_000) + "/claims",
		"/claims", "/sales/demo", "/sales/demo/claims/x/y", "/orders", "/orders/x/cancel", "/orders/00000000-0000-7000-8000-000000000000/cancel", "/orders/0/payment", "/function/nothing/", "/function/order-http/orders/x/cancel",
	} {
		code, d := s.raw(http.MethodPost, path, good, one())
		check("POST "+path, code, d)
	}
	for _, path := range []string{"/items/0x10%00", "/items/-%20", "/items/A", "/items/1..%2f", "/items/" + strings.Repeat("i", 9000), "/items/unknown", "/orders/x", claims + "/x"} {
		code, d := s.raw(http.MethodGet, path, good, nil)
		check("GET "+path, code, d)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
		code, d := s.raw(method, claims, good, one())
		check(method, code, d)
	}
	for _, c := range []struct{ contentType, body string }{
		{"application/json", `{}`},
		{"", `{}`},
		{events.ContentType, ``},
		{events.ContentType, `{"specversion":"1.0"}`},
		{events.ContentType, `{"id":"1","id":"2"}`},
		{events.BatchContentType, `{}`},
		{events.ContentType, strings.Repeat("A", 1<<20)},
	} {
		code, d := s.raw(http.MethodPost, "/function/order-consumer", map[string][]string{"Content-Type": {c.contentType}}, strings.NewReader(c.body))
		check(fmt.Sprintf("event %s %.30s", c.contentType, c.body), code, d)
	}
	code, d := s.raw(http.MethodPost, "/payments/callback", map[string][]string{"Content-Type": {"application/json"}}, strings.NewReader(`{"order":"x"}`))
	check("unsigned callback", code, d)
	s.cutBodies(20)
	var r audit.Report
	must(t, json.Unmarshal([]byte(s.seckillctl("audit", "demo")), &r))
	if r.Stock == nil || *r.Stock != 100 || r.Available != 100 || r.Reserved != 0 || len(r.Orders) != 0 || !r.Laws.Hold() {
		t.Fatalf("something changed: %+v", r)
	}
	if code, d := s.raw(http.MethodPost, claims, good, one()); code != http.StatusAccepted {
		t.Fatalf("the buyer of all that can still claim: %d %v", code, d)
	}
}

// cutBodies sends claims whose connection ends inside the body.
func (s *system) cutBodies(n int) {
	s.t.Helper()
	for range n {
		conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
		must(s.t, err)
		var request bytes.Buffer
		fmt.Fprintf(&request, "POST /sales/demo/claims HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{\"quantity\":1}       ", s.token("b1"))
		_, err = conn.Write(request.Bytes())
		must(s.t, err)
		must(s.t, conn.Close())
	}
}
