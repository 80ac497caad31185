package events_test

import (
	"errors"
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
		payload, e, err := events.Structured(header, []byte(data()))
		if err != nil {
			t.Fatal(name, err)
		}
		again, err := events.Parse(payload)
		if err != nil {
			t.Fatalf("%s: %v in %s", name, err, payload)
		}
		for _, got := range []events.Event{e, again} {
			if got.ID != "1" || got.Source != "/seckill/claims" || got.Subject != "s1/x" {
				t.Errorf("%s: event is %+v", name, got)
			}
			if c, err := got.Claim(); err != nil || c != claim() {
				t.Errorf("%s: claim is %+v (%v)", name, c, err)
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
		payload, _, err := events.Structured(header, []byte(body))
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
		payload, e, err := events.Structured(header, raw)
		if err != nil || string(payload) != string(raw) || e.ID != events.ClaimID(claim().Claim) {
			t.Errorf("%s: %+v (%v)", name, e, err)
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
		"a batch":    {map[string][]string{"content-type": {events.BatchContentType}}, "[]", events.ErrNotEvent},
		"other kind": {map[string][]string{"content-type": {"application/cloudevents+protobuf"}}, "x", events.ErrNotEvent},
	} {
		if payload, _, err := events.Structured(test.header, []byte(test.data)); !errors.Is(err, test.want) {
			t.Errorf("%s: %s, %v; want %v", name, payload, err, test.want)
		}
	}
}
