package campaign

import (
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// Violation is a law that did not hold.
type Violation struct {
	Law    string
	Sale   string
	Detail string
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Sale, v.Law, v.Detail) }

// record is all that a sale is judged by, once it is at rest.
type record struct {
	offer    *offer
	answers  []answer
	told     map[string]answer       // claims that buyers were told they have
	results  map[string]answer       // the last status of each of those
	orders   map[string]order        // by id
	payments map[string][]paymentRow // by order
	notes    notes
	epoch    int64
	// returned tells when a claim's units were back in Redis.
	returned func(claim string) (time.Time, bool)

	found []Violation
}

// perLaw bounds what is told of one law in one sale.
const perLaw = 5

func (r *record) violate(law, format string, args ...any) {
	n := 0
	for _, v := range r.found {
		if v.Law == law {
			n++
		}
	}
	if n < perLaw {
		r.found = append(r.found, Violation{Law: law, Sale: r.offer.sale.ID, Detail: fmt.Sprintf(format, args...)})
	}
}

// judge returns the laws that did not hold.
func (r *record) judge() []Violation {
	for _, law := range []func(){
		r.everyInstant, r.nothingLost, r.promises, r.durable, r.finality, r.money, r.oneKeyOneClaim, r.soldOutIsTrue, r.rebuilds, r.pages,
	} {
		law()
	}
	return r.found
}

// everyInstant: what the observer saw inside MySQL.
func (r *record) everyInstant() {
	if r.notes.oversold > 0 {
		r.violate("no oversell", "at %d of %d instants more units were live than opened", r.notes.oversold, r.notes.total)
	}
	if r.notes.unequal > 0 {
		r.violate("conservation", "at %d of %d instants opened was not available + live", r.notes.unequal, r.notes.total)
	}
	if r.notes.overLimit > 0 {
		r.violate("limit", "at %d of %d instants a buyer held more than the limit", r.notes.overLimit, r.notes.total)
	}
}

// nothingLost: a claim that its buyer was told of is an order, and its status
// says what the order says.
func (r *record) nothingLost() {
	for claim, a := range r.told {
		o, ok := r.orders[claim]
		if !ok {
			r.violate("nothing lost", "claim %s of %s was accepted at %s and has no order", claim, a.buyer, clock(a.end))
			continue
		}
		if o.Buyer != a.buyer || o.Quantity != a.quantity {
			r.violate("nothing lost", "claim %s is an order of %s for %d, not of %s for %d", claim, o.Buyer, o.Quantity, a.buyer, a.quantity)
		}
		if result := r.results[claim]; result.state != string(o.Status.ClaimStatus()) {
			r.violate("nothing lost", "claim %s of %s is %q for its buyer (%d %s) and %s in MySQL", claim, a.buyer, result.state, result.code, result.problem, o.Status)
		}
	}
}

// promises: an accepted claim becomes an order, unless its buyer took it back
// or Redis gave out units by older data.
func (r *record) promises() {
	for _, o := range r.orders {
		if o.Status != seckill.OrderRejected || r.offer.aged {
			continue
		}
		if _, told := r.told[o.ID]; told {
			r.violate("every unit sellable", "claim %s of %s was accepted and then rejected (%s), though Redis never had older data", o.ID, o.Buyer, o.Reason)
		}
	}
}

// clockSlack allows for instants that MySQL cut to milliseconds.
const clockSlack = 5 * time.Millisecond

// durable: who was told that his claim is ordered has an order by then.
func (r *record) durable() {
	for _, a := range r.answers {
		if a.kind != askStatus || a.state != string(seckill.ClaimOrdered) {
			continue
		}
		if o, ok := r.orders[a.claim]; ok && o.CreatedAt.After(a.end.Add(clockSlack)) {
			r.violate("nothing lost", "claim %s was called ordered at %s, its order is of %s", a.claim, clock(a.end), clock(o.CreatedAt))
		}
	}
}

// finality: what a buyer was told to be over does not come back.
func (r *record) finality() {
	for _, a := range r.answers {
		o, ok := r.orders[a.claim]
		if !ok {
			continue
		}
		over := a.kind == askStatus && (a.state == string(seckill.ClaimReleased) || a.state == string(seckill.ClaimRejected)) ||
			a.kind == askCancel && a.code == 200
		if over && o.Status.Live() && !o.late() {
			r.violate("nothing lost", "claim %s was told to be over (%s %s) at %s, its order is %s", a.claim, a.kind, a.state, clock(a.end), o.Status)
		}
		if a.kind == askCancel && a.code == 200 && o.Status != seckill.OrderCancelled {
			r.violate("nothing lost", "order %s was cancelled before its buyer's eyes at %s and is %s", a.claim, clock(a.end), o.Status)
		}
		if a.kind == askOrder && a.state == string(seckill.OrderPaid) && o.Status != seckill.OrderPaid {
			r.violate("money", "order %s was paid at %s and is %s", a.claim, clock(a.end), o.Status)
		}
	}
}

// rebuilds: without a loss in Redis no sale is built again; else a script or a
// function has spoiled its numbers.
func (r *record) rebuilds() {
	if !r.offer.lossy && r.epoch != r.offer.sale.Epoch {
		r.violate("conservation", "Redis lost nothing, yet its numbers had to be built again %d times", r.epoch-r.offer.sale.Epoch)
	}
}

// pages: the stock that is shown is one that the sale can have.
func (r *record) pages() {
	for _, a := range r.answers {
		if a.stock != nil && (*a.stock < 0 || *a.stock > r.offer.sale.Units) {
			r.violate("conservation", "the page showed a stock of %d at %s", *a.stock, clock(a.end))
		}
	}
}

func clock(t time.Time) string { return t.Local().Format("15:04:05.000") }
