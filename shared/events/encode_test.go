package events_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

var acceptedAt = time.Date(2026, 11, 11, 0, 0, 0, 123_456_789, time.FixedZone("CST", 8*3600))

func claim() seckill.AcceptedClaim {
	return seckill.AcceptedClaim{
		Claim: "0190a6c0-0000-7000-8000-00000000002a", Sale: "s1", SKU: "phone-1", Buyer: "Alice@example.com",
		Quantity: 2, PriceMinor: 199_900, Currency: "CNY", PayWindowMS: 900_000, Limit: 2,
		Epoch: 3, Seq: 1<<53 + 1, AcceptedAt: acceptedAt.Round(time.Millisecond).UTC(),
	}
}

func TestClaimEventIsReadByTheSDK(t *testing.T) {
	t.Parallel()
	c := claim()
	trace := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	var e cloudevents.Event
	if err := json.Unmarshal(events.AppendClaim(nil, c, trace), &e); err != nil {
		t.Fatal(err)
	}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	got := []string{e.ID(), e.Source(), e.Type(), e.Subject(), e.DataContentType(), e.SpecVersion()}
	want := []string{
		events.ClaimID(c.Claim), "/seckill/claims", "seckill.claim.accepted.v1",
		"s1/" + c.Claim, "application/json", "1.0",
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("attribute %d is %q, want %q", i, got[i], want[i])
		}
	}
	if e.Extensions()["partitionkey"] != "s1" || e.Extensions()["traceparent"] != trace {
		t.Errorf("extensions are %v", e.Extensions())
	}
	if !e.Time().Equal(c.AcceptedAt) {
		t.Errorf("time is %s, want %s", e.Time(), c.AcceptedAt)
	}
	var data seckill.AcceptedClaim
	if err := e.DataAs(&data); err != nil || data != c {
		t.Errorf("data is %+v (%v), want %+v", data, err, c)
	}
}

// The data is appended by hand: this fails when a field of the claim is added
// there and forgotten here.
func TestClaimDataIsWhatTheDomainSays(t *testing.T) {
	t.Parallel()
	want, err := json.Marshal(claim())
	if err != nil {
		t.Fatal(err)
	}
	got := string(events.AppendClaim(nil, claim(), ""))
	if !strings.HasSuffix(got, `,"data":`+string(want)+`}`) {
		t.Errorf("event is\n%s\nwant data\n%s", got, want)
	}
	if strings.Contains(got, "traceparent") {
		t.Error("an empty traceparent is sent")
	}
}

func TestClaimEventComesBack(t *testing.T) {
	t.Parallel()
	e, err := events.Parse(events.AppendClaim(nil, claim(), "00-a-b-01"))
	if err != nil {
		t.Fatal(err)
	}
	if e.PartitionKey != "s1" || e.TraceParent != "00-a-b-01" {
		t.Errorf("event is %+v", e)
	}
	if got, err := e.Claim(); err != nil || got != claim() {
		t.Errorf("claim is %+v (%v), want %+v", got, err, claim())
	}
	there := claim()
	there.AcceptedAt = there.AcceptedAt.In(acceptedAt.Location())
	if got, want := events.AppendClaim(nil, there, ""), events.AppendClaim(nil, claim(), ""); string(got) != string(want) {
		t.Errorf("elsewhere the event is\n%s, not\n%s", got, want)
	}
}

func TestStrangeTextIsQuoted(t *testing.T) {
	t.Parallel()
	c := claim()
	c.Buyer = "a\"b\\c\n限\x00"
	e, err := events.Parse(events.AppendClaim(nil, c, ""))
	if err != nil {
		t.Fatal(err)
	}
	var got seckill.AcceptedClaim
	if err := json.Unmarshal(e.Data, &got); err != nil || got.Buyer != c.Buyer {
		t.Errorf("buyer is %q (%v), want %q", got.Buyer, err, c.Buyer)
	}
}

func TestOrderEventIsReadByTheSDK(t *testing.T) {
	t.Parallel()
	payBy := acceptedAt.Add(time.Hour)
	order := seckill.Order{
		ID: claim().Claim, Sale: "s1", SKU: "phone-1", Buyer: "b1", Quantity: 1,
		AmountMinor: 5, Currency: "CNY", Status: seckill.OrderUnpaid, PayBy: payBy,
	}
	a, _ := order.Announce(acceptedAt)
	raw, err := events.AppendOrder(nil, a)
	if err != nil {
		t.Fatal(err)
	}
	var e cloudevents.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	if e.ID() != a.ID || e.Type() != "seckill.order.created.v1" || e.Source() != "/seckill/orders" {
		t.Errorf("event is %s", e)
	}
	var data seckill.OrderEvent
	if err := e.DataAs(&data); err != nil || data.Order != order.ID || !data.PayBy.Equal(payBy) || !data.At.Equal(acceptedAt) {
		t.Errorf("data is %+v (%v)", data, err)
	}
	a.Data.At = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, err := events.AppendOrder(nil, a); err == nil {
		t.Error("an instant beyond JSON was encoded")
	}
}

func TestChangeEventComesBack(t *testing.T) {
	t.Parallel()
	for kind, source := range map[seckill.EventType]string{
		seckill.EventItemChanged: events.SourceItems, seckill.EventSaleChanged: events.SourceSales,
	} {
		e, err := events.Parse(events.AppendChange(nil, kind, events.Change{ID: "phone-1", Version: 7}))
		if err != nil || e.Type != string(kind) || e.Source != source || e.ID != "phone-1.7" {
			t.Fatalf("event is %+v (%v)", e, err)
		}
		if got, err := e.Change(); err != nil || got != (events.Change{ID: "phone-1", Version: 7}) {
			t.Errorf("change is %+v (%v)", got, err)
		}
	}
}

func BenchmarkAppendClaim(b *testing.B) {
	c, dst := claim(), make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		dst = events.AppendClaim(dst[:0], c, "")
	}
}
