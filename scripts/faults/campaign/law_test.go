package campaign

import (
	"net/http"
	"testing"
	"time"

	"seckill/shared/seckill"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

// at is an instant of the record's sale, in milliseconds.
func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

func asked(key string, from, to, code int) answer {
	return answer{kind: askClaim, buyer: "b-" + key, key: key, quantity: 1, start: at(from), end: at(to), code: code}
}

func accepted(key string, from, to int) answer {
	a := asked(key, from, to, http.StatusAccepted)
	a.claim, a.own, a.state = "claim-"+key, true, "reserved"
	return a
}

func refused(key string, from, to int) answer {
	a := asked(key, from, to, http.StatusConflict)
	a.problem = "sold_out"
	return a
}

func told(key string, k kind, ms int, state string) answer {
	return answer{kind: k, buyer: "b-" + key, claim: "claim-" + key, start: at(ms - 1), end: at(ms), code: http.StatusOK, state: state}
}

// good is a sale of two units in which all laws hold: a paid, b cancelled and
// its unit back at 400, c refused while both were held, d after b.
func good() *record {
	row := func(key string, status seckill.OrderStatus, ms int) order {
		return order{seckill.Order{
			ID: "claim-" + key, Buyer: "b-" + key, Quantity: 1, Status: status, AmountMinor: 9900, Currency: "CNY",
			AcceptedAt: at(ms), CreatedAt: at(ms + 5), PayBy: at(ms + 1000),
		}}
	}
	r := &record{
		offer: &offer{sale: seckill.Sale{ID: "s", Units: 2, Limit: 1, PriceMinor: 9900, Currency: "CNY", Epoch: 1}},
		answers: []answer{
			accepted("a", 100, 110), told("a", askStatus, 150, "ordered"), told("a", askPay, 160, ""), told("a", askOrder, 170, "paid"),
			asked("b", 190, 195, 0), accepted("b", 200, 210), told("b", askStatus, 260, "ordered"),
			refused("c", 300, 310), told("b", askCancel, 350, "cancelled"), refused("c2", 390, 410),
			accepted("d", 500, 510), told("d", askStatus, 560, "ordered"),
		},
		results: map[string]answer{"claim-a": {state: "ordered"}, "claim-b": {state: "released"}, "claim-d": {state: "ordered"}},
		orders: map[string]order{
			"claim-a": row("a", seckill.OrderPaid, 100), "claim-b": row("b", seckill.OrderCancelled, 200), "claim-d": row("d", seckill.OrderUnpaid, 500),
		},
		payments: map[string][]paymentRow{"claim-a": {{9900, "CNY", string(seckill.PayApplied)}}},
		notes:    notes{total: 4}, epoch: 1,
		returned: func(claim string) (time.Time, bool) { return at(400), claim == "claim-b" },
	}
	r.told = map[string]answer{}
	for _, a := range r.answers {
		if a.accepted() {
			r.told[a.claim] = a
		}
	}
	return r
}

func TestEachLawIsJudged(t *testing.T) {
	t.Parallel()
	if found := good().judge(); len(found) > 0 {
		t.Fatalf("nothing is wrong: %v", found)
	}
	add := func(a ...answer) func(*record) { return func(r *record) { r.answers = append(r.answers, a...) } }
	change := func(key string, do func(*order)) func(*record) {
		return func(r *record) {
			o := r.orders["claim-"+key]
			do(&o)
			r.orders["claim-"+key] = o
		}
	}
	for name, c := range map[string]struct {
		spoil func(*record)
		law   string
	}{
		"more live than opened for a moment":   {func(r *record) { r.notes.oversold = 1 }, "no oversell"},
		"units missing for a moment":           {func(r *record) { r.notes.unequal = 1 }, "conservation"},
		"over the limit for a moment":          {func(r *record) { r.notes.overLimit = 1 }, "limit"},
		"a page with a stock below zero":       {add(answer{kind: askItem, stock: new(int64(-1))}), "conservation"},
		"built again for nothing":              {func(r *record) { r.epoch = 2 }, "conservation"},
		"a claim without an order":             {func(r *record) { delete(r.orders, "claim-d") }, "nothing lost"},
		"a claim whose buyer is not told":      {func(r *record) { r.results["claim-d"] = answer{state: "reserved"} }, "nothing lost"},
		"an order of another buyer":            {change("d", func(o *order) { o.Buyer = "b-x" }), "nothing lost"},
		"ordered before the order was there":   {change("d", func(o *order) { o.CreatedAt = at(700) }), "nothing lost"},
		"cancelled and yet alive":              {change("b", func(o *order) { o.Status = seckill.OrderUnpaid }), "nothing lost"},
		"accepted and then rejected":           {change("d", func(o *order) { o.Status, o.Reason = seckill.OrderRejected, seckill.ReasonSoldOut }), "every unit sellable"},
		"paid and then expired":                {change("a", func(o *order) { o.Status = seckill.OrderExpired }), "money"},
		"another price":                        {change("d", func(o *order) { o.AmountMinor = 1 }), "money"},
		"paid by nobody":                       {func(r *record) { r.payments = nil }, "money"},
		"paid another amount":                  {func(r *record) { r.payments["claim-a"][0].amountMinor = 1 }, "money"},
		"a key that became two claims":         {add(func() answer { a := accepted("d", 600, 610); a.claim = "claim-a"; return a }()), "one key, one claim"},
		"a refusal after the acceptance":       {add(refused("d", 600, 610)), "unknown is not no"},
		"a key without a clear answer":         {add(asked("e", 600, 610, http.StatusServiceUnavailable)), "self-healing"},
		"sold out while a unit was free":       {add(refused("e", 420, 430)), "every unit sellable"},
		"sold out for two with two held never": {add(func() answer { a := refused("e", 10, 20); a.quantity = 2; return a }()), "every unit sellable"},
	} {
		r := good()
		c.spoil(r)
		broken := false
		for _, v := range r.judge() {
			broken = broken || v.Law == c.law
		}
		if !broken {
			t.Errorf("%s: %q is not broken: %v", name, c.law, r.found)
		}
	}
}

// What is no violation: a unit that may have been held by a claim Redis lost.
func TestSoldOutMayBeTrue(t *testing.T) {
	t.Parallel()
	r := good()
	r.answers = append(r.answers, asked("e", 405, 415, 0), refused("f", 420, 430), refused("e", 450, 460))
	if found := r.judge(); len(found) > 0 {
		t.Errorf("the unanswered attempt of e may have held it: %v", found)
	}
	r = good()
	r.offer.distrusted = []span{{at(415), at(440)}}
	r.answers = append(r.answers, refused("f", 420, 430))
	if found := r.judge(); len(found) > 0 {
		t.Errorf("Redis had older data: %v", found)
	}
}
