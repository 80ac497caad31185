package events_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"seckill/shared/events"
)

// messageHeader is ceHeaders as another transport has them, keys changed by f.
func messageHeader(f func(string) string) map[string][]string {
	header := map[string][]string{f("content-type"): {"application/json"}}
	all := ceHeaders("1")
	for i := 0; i < len(all); i += 2 {
		header[f(all[i])] = []string{all[i+1]}
	}
	return header
}

func TestBinaryMessageBecomesStructured(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]map[string][]string{
		"lower":    messageHeader(func(k string) string { return k }),
		"upper":    messageHeader(upper),
		"one each": {"CE-id": {"1"}, "Ce-Source": {"/seckill/claims"}, "ce-TYPE": {"seckill.claim.accepted.v1"}, "cE-specversion": {"1.0"}, "ce-subject": {"s1/x"}},
	} {
		payload, id, err := split(header, data())
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := events.Parse(payload)
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, payload)
		}
		if id != "1" || got.ID != "1" || got.Source != "/seckill/claims" || got.Subject != "s1/x" {
			t.Errorf("%s: event %s is %+v", name, id, got)
		}
		if c, err := got.Claim(); err != nil || c != claim() {
			t.Errorf("%s: claim is %+v (%v)", name, c, err)
		}
	}
}

// split returns the one event of a message.
func split(header map[string][]string, data string) (payload []byte, id string, err error) {
	parts, err := events.Split(header, []byte(data))
	if err != nil {
		return nil, "", err
	}
	if len(parts) != 1 {
		return nil, "", fmt.Errorf("%d events", len(parts))
	}
	return parts[0].Payload, parts[0].ID, parts[0].Err
}

// A batch is cut into its events, whoever wrote it; a bad one among them is
// bad alone.
func TestBatchMessageIsCut(t *testing.T) {
	t.Parallel()
	ours := string(events.AppendClaim(nil, claim(), ""))
	foreign := structured(`"data":{}`)
	id := events.ClaimID(claim().Claim)
	for name, test := range map[string]struct {
		elements []string
		ids      []string // empty for a bad one
	}{
		"ours":    {[]string{ours, ours}, []string{id, id}},
		"one":     {[]string{ours}, []string{id}},
		"foreign": {[]string{foreign, foreign}, []string{"1", "1"}},
		"mixed":   {[]string{ours, foreign, ours}, []string{id, "1", id}},
		"spaced":  {[]string{" " + ours, ours + " "}, []string{id, id}},
		"bad":     {[]string{ours, `{"a":1}`, `7`, ours}, []string{id, "", "", id}},
	} {
		header := map[string][]string{"Content-Type": {events.BatchContentType}}
		parts, err := events.Split(header, []byte("["+strings.Join(test.elements, ",")+"]"))
		if err != nil || len(parts) != len(test.ids) {
			t.Errorf("%s: %d events (%v)", name, len(parts), err)
			continue
		}
		for i, p := range parts {
			if p.ID != test.ids[i] || errors.Is(p.Err, events.ErrMalformed) != (p.ID == "") || string(p.Payload) != strings.TrimSpace(test.elements[i]) {
				t.Errorf("%s: event %d is %s %s (%v)", name, i, p.ID, p.Payload, p.Err)
			}
		}
	}
}

func upper(s string) string {
	out := []byte(s)
	for i, b := range out {
		if 'a' <= b && b <= 'z' {
			out[i] = b - 32
		}
	}
	return string(out)
}

func TestBinaryMessageKeepsDataThatIsNoJSON(t *testing.T) {
	t.Parallel()
	header := messageHeader(upper)
	for contentType, body := range map[string]string{"text/plain": "x\xff", "application/json": "{"} {
		header["CONTENT-TYPE"] = []string{contentType}
		payload, _, err := split(header, body)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := events.Parse(payload); err != nil || string(e.Data) != body || e.DataType != contentType {
			t.Errorf("event is %+v (%v)", e, err)
		}
	}
}

func TestStructuredMessageIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	raw := events.AppendClaim(nil, claim(), "")
	for name, header := range map[string]map[string][]string{
		"ours":           {"content-type": {events.ContentType}, "Nats-Msg-Id": {"1"}},
		"no headers":     nil,
		"headers beside": {"Content-Type": {events.ContentType}, "ce-id": {"other"}},
	} {
		payload, id, err := split(header, string(raw))
		if err != nil || string(payload) != string(raw) || id != events.ClaimID(claim().Claim) {
			t.Errorf("%s: %s (%v)", name, id, err)
		}
	}
}

func TestMessageThatIsNoEvent(t *testing.T) {
	t.Parallel()
	twice := messageHeader(upper)
	twice["ce-id"] = []string{"2"}
	for name, test := range map[string]struct {
		header map[string][]string
		data   string
		want   error
	}{
		"empty":      {nil, "", events.ErrMalformed},
		"null":       {nil, "null", events.ErrMalformed},
		"no id":      {map[string][]string{"ce-type": {"t"}}, "{}", events.ErrMalformed},
		"two ids":    {twice, data(), events.ErrMalformed},
		"no batch":   {map[string][]string{"content-type": {events.BatchContentType}}, "{}", events.ErrMalformed},
		"no events":  {map[string][]string{"content-type": {events.BatchContentType}}, "[]", events.ErrMalformed},
		"too many":   {map[string][]string{"content-type": {events.BatchContentType}}, "[1" + strings.Repeat(",1", events.BatchMax) + "]", events.ErrTooLarge},
		"other kind": {map[string][]string{"content-type": {"application/cloudevents+protobuf"}}, "x", events.ErrNotEvent},
	} {
		if payload, _, err := split(test.header, test.data); !errors.Is(err, test.want) {
			t.Errorf("%s: %s, %v; want %v", name, payload, err, test.want)
		}
	}
}
