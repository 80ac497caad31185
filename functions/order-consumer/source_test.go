package orderconsumer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	orderconsumer "seckill/functions/order-consumer"
	"seckill/shared/events"
	"seckill/shared/seckill"
)

// The id of an event decides nothing: two sources may use the same, and the
// same claim may come under several. The claim says what it is.
func TestEventIDsDecideNothing(t *testing.T) {
	t.Parallel()
	var got []string
	orders := &fakeOrders{place: func(claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
		for _, c := range claims {
			got = append(got, c.Claim)
		}
		return placeAll(claims)
	}}
	h := orderconsumer.New(testConfig(), orders, &fakeRedis{answer: seckill.SettledDone})
	one, other := claimOf("s1", "b1"), claimOf("s1", "b2")
	event := func(id, source string, c seckill.AcceptedClaim) string {
		_, data, _ := strings.Cut(eventOf(c), `"data":`)
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":%q,"type":%q,"data":%s`, id, source, seckill.EventClaimAccepted, data)
	}
	for _, e := range []string{event("1", "/a", one), event("1", "/b", other), event("2", "/a", one)} {
		if w := post(h, events.ContentType, e); w.Code != 200 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	batch := post(h, events.BatchContentType, "["+event("7", "/a", one)+","+event("7", "/b", other)+"]")
	if batch.Code != 200 || results(t, batch) != "applied applied" {
		t.Errorf("batch: %d %s", batch.Code, batch.Body)
	}
	if want := []string{one.Claim, other.Claim, one.Claim, one.Claim, other.Claim}; !slices.Equal(got, want) {
		t.Errorf("placed %v, want %v", got, want)
	}
}
