package strictjson_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/strictjson"
)

type document struct {
	Quantity int64          `json:"quantity"`
	Name     string         `json:"name"`
	Price    uint32         `json:"price"`
	Share    float64        `json:"share"`
	Paused   bool           `json:"paused"`
	At       time.Time      `json:"at"`
	List     []document     `json:"list"`
	Any      map[string]any `json:"any"`
}

func TestUnmarshalTakesWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	var got document
	text := ` {"quantity":-9223372036854775808,"name":"抢购 \u0041","price":4294967295,"share":1e-2,"paused":true,
		"at":"2026-11-11T20:00:00.5+08:00","list":[{"quantity":1},{}],"any":{"a":[1,"b"]}}` + "\n"
	if err := strictjson.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 11, 12, 0, 0, 500_000_000, time.UTC)
	if !got.At.Equal(at) {
		t.Errorf("at is %s", got.At)
	}
	got.At = time.Time{}
	want := document{
		Quantity: -1 << 63, Name: "抢购 A", Price: 1<<32 - 1, Share: 0.01, Paused: true,
		List: []document{{Quantity: 1}, {}}, Any: map[string]any{"a": []any{1.0, "b"}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	t.Parallel()
	nested := func(n int) string {
		return `{"any":{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}`
	}
	if err := strictjson.Unmarshal([]byte(nested(30)), &document{}); err != nil {
		t.Errorf("32 levels: %v", err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "body: is empty"},
		{"spaces", " \n", "body: is empty"},
		{"null", "null", "body: must not be null"},
		{"list", "[]", "body: must be an object"},
		{"text", `"x"`, "body: must be an object"},
		{"number", `1`, "body: must be an object"},
		{"true", `true`, "body: must be an object"},
		{"byte order mark", "\xef\xbb\xbf{}", "body: is not valid JSON, at byte 0"},
		{"UTF-16", "\xff\xfe{\x00}\x00", "body: is not valid JSON, at byte 0"},
		{"broken UTF-8 in a string", `{"name":"` + "\xff" + `"}`, "body: is not valid JSON, at byte 9"},
		{"lone surrogate", `{"name":"\ud800"}`, "body: is not valid JSON, at byte 9"},
		{"unfinished", `{"quantity":1`, "body: is not valid JSON, at byte 13"},
		{"comment", `{/*x*/}`, "body: is not valid JSON, at byte 1"},
		{"trailing comma", `{"quantity":1,}`, "body: is not valid JSON, at byte 13"},
		{"single quotes", `{'quantity':1}`, "body: is not valid JSON, at byte 1"},
		{"NaN", `{"share":NaN}`, "body: is not valid JSON, at byte 9"},
		{"leading zero", `{"quantity":01}`, "body: is not valid JSON, at byte 13"},
		{"plus", `{"quantity":+1}`, "body: is not valid JSON, at byte 12"},
		{"second document", `{"quantity":1}{"quantity":2}`, "body: is not valid JSON, at byte 14"},
		{"garbage behind", `{"quantity":1} x`, "body: is not valid JSON, at byte 15"},
		{"NUL behind", "{\"quantity\":1}\x00", "body: is not valid JSON, at byte 14"},
		{"unknown key", `{"user":"u2"}`, "user: is not known here"},
		{"unknown key within", `{"list":[{},{"x":1}]}`, "list.1.x: is not known here"},
		{"other case", `{"quantity":1,"QUANTITY":5}`, "QUANTITY: is not known here"},
		{"Kelvin sign folds to k", "{\"\u212a\":1}", "\u212a: is not known here"},
		{"key twice", `{"quantity":1,"quantity":1}`, "quantity: appears twice"},
		{"key twice, escaped", `{"quantity":1,"quantit\u0079":2}`, "quantity: appears twice"},
		{"key twice within", `{"list":[{"name":"a","name":"b"}]}`, "list.0.name: appears twice"},
		{"key twice in a map", `{"any":{"a":1,"a":2}}`, "any.a: appears twice"},
		{"null field", `{"quantity":null}`, "quantity: must not be null"},
		{"null in a list", `{"any":{"a":[1,null]}}`, "any.a.1: must not be null"},
		{"1.5", `{"quantity":1.5}`, "quantity: must be an integer"},
		{"1.0", `{"quantity":1.0}`, "quantity: must be an integer"},
		{"1e0", `{"quantity":1e0}`, "quantity: must be an integer"},
		{"-0", `{"quantity":-0}`, "quantity: must not be -0"},
		{"1e400", `{"quantity":1e400}`, "quantity: must be an integer"},
		{"2^63", `{"quantity":9223372036854775808}`, "quantity: is out of range"},
		{"2^32", `{"price":4294967296}`, "price: is out of range"},
		{"negative for unsigned", `{"price":-1}`, "price: must be an integer"},
		{"number as text", `{"quantity":"1"}`, "quantity: must be an integer"},
		{"true as number", `{"quantity":true}`, "quantity: must be an integer"},
		{"list as number", `{"quantity":[1]}`, "quantity: must be an integer"},
		{"number as string", `{"name":1}`, "name: must be a string"},
		{"number as boolean", `{"paused":0}`, "paused: must be true or false"},
		{"object as list", `{"list":{}}`, "list: must be a list"},
		{"text as number", `{"share":"1"}`, "share: must be a number"},
		{"time without offset", `{"at":"2026-11-11T20:00:00"}`, "at: must be an RFC 3339 instant with offset"},
		{"time as number", `{"at":1}`, "at: must be an RFC 3339 instant with offset"},
		{"33 levels", nested(31), "body: is nested more than 32 levels deep"},
		{"100 000 brackets", strings.Repeat("[", 100_000), "body: is nested more than 32 levels deep"},
		{"long key", `{"` + strings.Repeat("x", 5000) + `":1}`, strings.Repeat("x", 64) + ": is not known here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := strictjson.Unmarshal([]byte(c.text), &document{})
			if err == nil || err.Error() != c.want || !errors.Is(err, seckill.ErrInvalid) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestDecodeWantsJSONContent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		types, encodings []string
		ok               bool
	}{
		{[]string{"application/json"}, nil, true},
		{[]string{"Application/JSON; Charset=UTF-8"}, []string{"identity"}, true},
		{nil, nil, false},
		{[]string{""}, nil, false},
		{[]string{"text/plain"}, nil, false},
		{[]string{"application/json; charset=utf-16"}, nil, false},
		{[]string{"application/json; charset=utf-8; x=y"}, nil, false},
		{[]string{"application/json; x"}, nil, false},
		{[]string{"application/problem+json"}, nil, false},
		{[]string{"application/json", "application/json"}, nil, false},
		{[]string{"application/json"}, []string{"gzip"}, false},
		{[]string{"application/json"}, []string{"identity", "gzip"}, false},
	} {
		t.Run(fmt.Sprint(c.types, c.encodings), func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(`{"quantity":2}`))
			r.Header["Content-Type"], r.Header["Content-Encoding"] = c.types, c.encodings
			var got document
			err := strictjson.Decode(httptest.NewRecorder(), r, 100, &got)
			if c.ok && (err != nil || got.Quantity != 2) || !c.ok && !errors.Is(err, problem.ErrContentType) {
				t.Errorf("read %d, %v", got.Quantity, err)
			}
		})
	}
}

func TestDecodeBoundsTheBody(t *testing.T) {
	t.Parallel()
	body := `{"quantity":2}`
	for _, c := range []struct {
		body io.Reader
		ok   bool
	}{
		{strings.NewReader(body), true},
		{strings.NewReader(body + " "), false},
		{io.MultiReader(strings.NewReader(body), endless{}), false},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", c.body)
		r.Header.Set("Content-Type", "application/json")
		err := strictjson.Decode(httptest.NewRecorder(), r, int64(len(body)), &document{})
		if c.ok && err != nil || !c.ok && !errors.Is(err, problem.ErrTooLarge) {
			t.Errorf("%T: %v", c.body, err)
		}
	}
}

// endless is a body that spaces never end.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// A connection that is cut after a valid document, but before the announced
// length, brought half a request.
func TestDecodeRefusesABodyCutShort(t *testing.T) {
	t.Parallel()
	got := make(chan error, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- strictjson.Decode(w, r, 1000, &document{})
	}))
	t.Cleanup(srv.Close)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(conn)
	_, _ = fmt.Fprint(w, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{\"quantity\":1}")
	if err := errors.Join(w.Flush(), conn.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, seckill.ErrInvalid) {
		t.Errorf("half a body gave %v", err)
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	type claim struct {
		Quantity int64 `json:"quantity"`
	}
	b.ReportAllocs()
	for b.Loop() {
		var c claim
		if err := strictjson.Unmarshal([]byte(`{"quantity":1}`), &c); err != nil {
			b.Fatal(err)
		}
	}
}
