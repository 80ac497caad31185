package events_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

const sizeMax = 4 << 20

// request builds a POST; headers alternate names and values.
func request(t *testing.T, contentType, body string, headers ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// ceHeaders are the attributes of a claim's event in binary mode.
func ceHeaders(id string) []string {
	return []string{
		"ce-specversion", "1.0", "ce-id", id, "ce-source", "/seckill/claims",
		"ce-type", "seckill.claim.accepted.v1", "ce-subject", "s1%2Fx", "ce-partitionkey", "s1",
	}
}

// data is the claim as its event carries it.
func data() string {
	raw := string(events.AppendClaim(nil, claim(), ""))
	_, after, _ := strings.Cut(raw, `"data":`)
	return strings.TrimSuffix(after, "}")
}

// structured builds an event from the members given.
func structured(members ...string) string {
	return `{"specversion":"1.0","id":"1","source":"/a","type":"seckill.claim.accepted.v1",` + strings.Join(members, ",") + "}"
}

// Every way that a CloudEvent in JSON may carry the claim gives the same claim.
func TestReadGivesTheSameClaim(t *testing.T) {
	t.Parallel()
	d := data()
	b64 := strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(d)), "+", `\u002B`)
	tests := map[string]*http.Request{
		"binary":                request(t, "application/json", d, ceHeaders("1")...),
		"binary, no type":       request(t, "", d, ceHeaders("1")...),
		"binary, vendor type":   request(t, "application/vnd.x+json", d, ceHeaders("1")...),
		"structured":            request(t, events.ContentType, string(events.AppendClaim(nil, claim(), ""))),
		"structured, charset":   request(t, events.ContentType+"; charset=UTF-8", structured(`"data":`+d)),
		"text/json":             request(t, events.ContentType, structured(`"datacontenttype":"text/json"`, `"data":`+d)),
		"with charset":          request(t, events.ContentType, structured(`"datacontenttype":"application/json; charset=utf-8"`, `"data":`+d)),
		"data first":            request(t, events.ContentType, `{"data":`+d+`,"datacontenttype":"application/vnd.x+json",`+structured(`"x":1}`)[1:len(structured(`"x":1}`))-1]),
		"base64":                request(t, events.ContentType, structured(`"data_base64":"`+b64+`"`)),
		"30 extensions":         request(t, events.ContentType, structured(extensions(30), `"data":`+d)),
		"year 1":                request(t, events.ContentType, structured(`"time":"0001-01-01T00:00:00Z"`, `"data":`+d)),
		"year 9999":             request(t, events.ContentType, structured(`"time":"9999-12-31t23:59:59.999999999z"`, `"data":`+d)),
		"null attribute":        request(t, events.ContentType, structured(`"time":null`, `"data":`+d)),
		"headers and body":      request(t, events.ContentType, structured(`"data":`+d), ceHeaders("other")...),
		"broken headers beside": request(t, events.ContentType, structured(`"data":`+d), "ce-id", ""),
	}
	for name, r := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batch, isBatch, err := events.Read(r, sizeMax)
			if err != nil || isBatch || len(batch) != 1 {
				t.Fatalf("read %v, batch %t, %v", batch, isBatch, err)
			}
			if id := batch[0].ID; id != "1" && id != events.ClaimID(claim().Claim) {
				t.Errorf("id is %q", id)
			}
			if got, err := batch[0].Claim(); err != nil || got != claim() {
				t.Errorf("claim is %+v (%v)", got, err)
			}
		})
	}
}

func extensions(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"ext%d":"v"`, i)
	}
	return strings.Join(all, ",")
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	good := structured(`"data":` + data())
	without := func(name string) string {
		return strings.Replace(good, `"`+name+`":`, `"x`+name+`":`, 1)
	}
	tests := map[string]struct {
		request *http.Request
		want    error
	}{
		"plain JSON":            {request(t, "application/json", data()), events.ErrNotEvent},
		"nothing":               {request(t, "", ""), events.ErrNotEvent},
		"another type":          {request(t, "text/plain", "x"), events.ErrNotEvent},
		"another format":        {request(t, "application/cloudevents+avro", "x"), events.ErrNotEvent},
		"another charset":       {request(t, events.ContentType+"; charset=gbk", good), events.ErrNotEvent},
		"compressed":            {request(t, events.ContentType, good, "Content-Encoding", "gzip"), events.ErrNotEvent},
		"empty structured":      {request(t, events.ContentType, ""), events.ErrMalformed},
		"cut off":               {request(t, events.ContentType, good[:len(good)-1]), events.ErrMalformed},
		"trailing":              {request(t, events.ContentType, good+"{}"), events.ErrMalformed},
		"array":                 {request(t, events.ContentType, "["+good+"]"), events.ErrMalformed},
		"null":                  {request(t, events.ContentType, "null"), events.ErrMalformed},
		"BOM":                   {request(t, events.ContentType, "\ufeff"+good), events.ErrMalformed},
		"not UTF-8":             {request(t, events.ContentType, structured("\"subject\":\"\xff\"")), events.ErrMalformed},
		"no id":                 {request(t, events.ContentType, without("id")), events.ErrMalformed},
		"no source":             {request(t, events.ContentType, without("source")), events.ErrMalformed},
		"no type":               {request(t, events.ContentType, without("type")), events.ErrMalformed},
		"no specversion":        {request(t, events.ContentType, without("specversion")), events.ErrMalformed},
		"blank id":              {request(t, events.ContentType, strings.Replace(good, `"1"`, `" "`, 1)), events.ErrMalformed},
		"id in capitals":        {request(t, events.ContentType, strings.Replace(good, `"id"`, `"ID"`, 1)), events.ErrMalformed},
		"two ids":               {request(t, events.ContentType, structured(`"id":"2"`)), events.ErrMalformed},
		"two escaped ids":       {request(t, events.ContentType, structured(`"i\u0064":"1"`)), events.ErrMalformed},
		"two buyers":            {request(t, events.ContentType, strings.Replace(good, `"sku"`, `"buyer":"b","sku"`, 1)), events.ErrMalformed},
		"number as id":          {request(t, events.ContentType, strings.Replace(good, `"1"`, `1`, 1)), events.ErrMalformed},
		"version 0.3":           {request(t, events.ContentType, strings.Replace(good, "1.0", "0.3", 1)), events.ErrMalformed},
		"version 9.9":           {request(t, events.ContentType, strings.Replace(good, "1.0", "9.9", 1)), events.ErrMalformed},
		"strange time":          {request(t, events.ContentType, structured(`"time":"yesterday"`)), events.ErrMalformed},
		"data then bad type":    {request(t, events.ContentType, structured(`"data":`+data(), `"datacontenttype":"?"`)), events.ErrMalformed},
		"bad type then data":    {request(t, events.ContentType, structured(`"datacontenttype":"?"`, `"data":`+data())), events.ErrMalformed},
		"object as XML":         {request(t, events.ContentType, structured(`"data":{}`, `"datacontenttype":"text/xml"`)), events.ErrMalformed},
		"data twice over":       {request(t, events.ContentType, structured(`"data":1`, `"data_base64":"MQ=="`)), events.ErrMalformed},
		"bad base64":            {request(t, events.ContentType, structured(`"data_base64":"?"`)), events.ErrMalformed},
		"binary, no version":    {request(t, "application/json", data(), ceHeaders("1")[2:]...), events.ErrMalformed},
		"binary, blank id":      {request(t, "application/json", data(), ceHeaders(" ")...), events.ErrMalformed},
		"binary, two ids":       {request(t, "application/json", data(), append(ceHeaders("1"), "ce-id", "2")...), events.ErrMalformed},
		"binary, version 0.3":   {request(t, "application/json", data(), append(ceHeaders("1")[2:], "ce-specversion", "0.3")...), events.ErrMalformed},
		"batch, not an array":   {request(t, events.BatchContentType, good), events.ErrMalformed},
		"batch, cut off":        {request(t, events.BatchContentType, "["+good), events.ErrMalformed},
		"batch, trailing":       {request(t, events.BatchContentType, "["+good+"] x"), events.ErrMalformed},
		"batch, too many":       {request(t, events.BatchContentType, "[1"+strings.Repeat(",1", events.BatchMax)+"]"), events.ErrTooLarge},
		"too many bytes":        {request(t, events.ContentType, good+strings.Repeat(" ", sizeMax)), events.ErrTooLarge},
		"too many, length lied": {chunked(request(t, events.ContentType, good+strings.Repeat(" ", sizeMax))), events.ErrTooLarge},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batch, _, err := events.Read(test.request, sizeMax)
			if !errors.Is(err, test.want) || batch != nil {
				t.Errorf("read %v, %v; want %v", batch, err, test.want)
			}
		})
	}
}

// chunked hides the length of the body.
func chunked(r *http.Request) *http.Request {
	r.ContentLength = -1
	return r
}

// These are events, but no accepted claim can be made of them.
func TestClaimRefuses(t *testing.T) {
	t.Parallel()
	swap := func(from, to string) string { return `"data":` + strings.Replace(data(), from, to, 1) }
	tests := map[string]string{
		"no data":             `"subject":"x"`,
		"null":                `"data":null`,
		"a JSON string":       `"data":"{}"`,
		"an array":            `"data":[]`,
		"another schema":      `"data":{"a":1}`,
		"text":                `"datacontenttype":"text/plain","data":"x"`,
		"bytes that are text": `"data_base64":"eHg="`,
		"capital buyer":       swap(`"buyer"`, `"Buyer"`),
		"quantity as text":    swap(`"quantity":2`, `"quantity":"2"`),
		"quantity too big":    swap(`"quantity":2`, `"quantity":18446744073709551618`),
		"quantity 1.5":        swap(`"quantity":2`, `"quantity":1.5`),
		"long buyer":          swap("Alice", strings.Repeat("a", 300)),
		"year 1":              swap("2026-11", "0001-11"),
		"year 10000":          swap("2026-11-10T16:00:00.123Z", "9999-12-31T23:59:59-01:00"),
	}
	for name, member := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batch, _, err := events.Read(request(t, events.ContentType, structured(member)), sizeMax)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := batch[0].Claim(); !errors.Is(err, seckill.ErrInvalid) {
				t.Errorf("claim is %+v (%v), want ErrInvalid", got, err)
			}
		})
	}
}

func TestBadEventLeavesItsBatchAlone(t *testing.T) {
	t.Parallel()
	good := string(events.AppendClaim(nil, claim(), ""))
	bad := []string{"null", "[]", "7", structured(`"id":"2"`), `{"specversion":"1.0"}`, "{\"id\":\"\xff\"}"}
	body := "[" + good + "," + strings.Join(bad, ",") + " ,\n" + good + "]"
	batch, isBatch, err := events.Read(request(t, events.BatchContentType+"; charset=utf-8", body), sizeMax)
	if err != nil || !isBatch || len(batch) != len(bad)+2 {
		t.Fatalf("read %d events, batch %t, %v", len(batch), isBatch, err)
	}
	for i, e := range batch {
		whole := i == 0 || i == len(batch)-1
		if whole != (e.Err == nil) || (!whole && !errors.Is(e.Err, events.ErrMalformed)) {
			t.Errorf("event %d: %v", i, e.Err)
		}
		if got, err := e.Claim(); whole && (err != nil || got != claim()) {
			t.Errorf("event %d is %+v (%v)", i, got, err)
		}
	}
	if batch, isBatch, err := events.Read(request(t, events.BatchContentType, " [ ] "), sizeMax); err != nil || !isBatch || len(batch) != 0 {
		t.Errorf("empty batch: %v, %t, %v", batch, isBatch, err)
	}
}

// What the SDK sends in each mode is read as the SDK means it.
func TestReadUnderstandsTheSDK(t *testing.T) {
	t.Parallel()
	e := cloudevents.NewEvent()
	e.SetID("1")
	e.SetSource("/a")
	e.SetType("order.foo")
	e.SetSubject("50% 限/x")
	e.SetExtension("partitionkey", "s1")
	if err := e.SetData("application/json", claim()); err != nil {
		t.Fatal(err)
	}
	for name, ctx := range map[string]func(*http.Request) error{
		"binary": func(r *http.Request) error {
			return cehttp.WriteRequest(cloudevents.WithEncodingBinary(t.Context()), cloudevents.ToMessage(&e), r)
		},
		"structured": func(r *http.Request) error {
			return cehttp.WriteRequest(cloudevents.WithEncodingStructured(t.Context()), cloudevents.ToMessage(&e), r)
		},
		"batch": func(r *http.Request) error {
			sent, err := cehttp.NewHTTPRequestFromEvents(t.Context(), "http://x", []cloudevents.Event{e})
			r.Header, r.Body, r.ContentLength = sent.Header, sent.Body, sent.ContentLength
			return err
		},
	} {
		r := request(t, "", "")
		if err := ctx(r); err != nil {
			t.Fatal(name, err)
		}
		batch, isBatch, err := events.Read(r, sizeMax)
		if err != nil || len(batch) != 1 || isBatch != (name == "batch") {
			t.Fatalf("%s: read %v, %v", name, batch, err)
		}
		got := batch[0]
		if got.ID != "1" || got.Type != "order.foo" || got.Subject != "50% 限/x" || got.PartitionKey != "s1" || got.Err != nil {
			t.Errorf("%s: event is %+v", name, got)
		}
		if c, err := got.Claim(); err != nil || c != claim() {
			t.Errorf("%s: claim is %+v (%v)", name, c, err)
		}
	}
}

// The rate is in events; a batch of 500 is decoded to claims in each round.
func BenchmarkReadBatch(b *testing.B) {
	const size = 500
	body := "[" + strings.Repeat(string(events.AppendClaim(nil, claim(), ""))+",", size-1) + string(events.AppendClaim(nil, claim(), "")) + "]"
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", events.BatchContentType)
		batch, _, err := events.Read(r, sizeMax)
		if err != nil || len(batch) != size {
			b.Fatal(len(batch), err)
		}
		for _, e := range batch {
			if _, err := e.Claim(); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "events/s")
}
