package seckill

import "time"

// EventType is the CloudEvents type of something that happened.
type EventType string

// The events of the system; each name is a contract with its readers.
const (
	EventClaimAccepted  EventType = "seckill.claim.accepted.v1"
	EventOrderCreated   EventType = "seckill.order.created.v1"
	EventOrderPaid      EventType = "seckill.order.paid.v1"
	EventOrderCancelled EventType = "seckill.order.cancelled.v1"
	EventOrderExpired   EventType = "seckill.order.expired.v1"
	EventOrderRejected  EventType = "seckill.order.rejected.v1"
	EventOrderRefunded  EventType = "seckill.order.refunded.v1"
	EventItemChanged    EventType = "seckill.item.changed.v1"
	EventSaleChanged    EventType = "seckill.sale.changed.v1"
)

// OrderEvent is the data of every seckill.order.*.v1 event.
type OrderEvent struct {
	Order       string      `json:"order"`
	Sale        string      `json:"sale"`
	SKU         string      `json:"sku"`
	Buyer       string      `json:"buyer"`
	Quantity    int64       `json:"quantity"`
	AmountMinor int64       `json:"amount_minor"`
	Currency    string      `json:"currency"`
	Status      OrderStatus `json:"status"`
	Reason      Reason      `json:"reason,omitempty"`
	PayBy       *time.Time  `json:"pay_by,omitempty"`
	At          time.Time   `json:"at"`
}

// Announcement is an event that waits in the outbox to be published. ID is
// what happened to which order, so publishing it twice is seen as one.
type Announcement struct {
	ID   string     `json:"id"`
	Type EventType  `json:"type"`
	Data OrderEvent `json:"data"`
}

// announced maps a state to the event that says it was entered.
var announced = map[OrderStatus]EventType{
	OrderUnpaid: EventOrderCreated, OrderPaid: EventOrderPaid,
	OrderCancelled: EventOrderCancelled, OrderExpired: EventOrderExpired,
	OrderRejected: EventOrderRejected, OrderRefunded: EventOrderRefunded,
}

// Announce returns the event that says the order entered its state at at;
// ok is false for a state that is not announced.
func (o Order) Announce(at time.Time) (a Announcement, ok bool) {
	kind, ok := announced[o.Status]
	if !ok {
		return Announcement{}, false
	}
	data := OrderEvent{
		Order: o.ID, Sale: o.Sale, SKU: o.SKU, Buyer: o.Buyer, Quantity: o.Quantity,
		AmountMinor: o.AmountMinor, Currency: o.Currency, Status: o.Status, Reason: o.Reason, At: at,
	}
	if o.Status == OrderUnpaid {
		data.PayBy = &o.PayBy
	}
	return Announcement{ID: o.ID + "." + string(o.Status), Type: kind, Data: data}, true
}

// OutboxRow is work that a committed transaction left for afterwards: units
// to give back in Redis and events to publish. Both are safe to do twice.
type OutboxRow struct {
	ID        int64
	Sale      string
	Returns   []Return
	Announce  []Announcement
	CreatedAt time.Time
}

// Verdict is what became of one delivered event.
type Verdict string

// The verdicts; every event gets exactly one.
const (
	VerdictApplied   Verdict = "applied"   // an order was written
	VerdictDuplicate Verdict = "duplicate" // it had been judged before
	VerdictRejected  Verdict = "rejected"  // refused, visibly, units given back
	VerdictIgnored   Verdict = "ignored"   // not an event of this function
	VerdictRetry     Verdict = "retry"     // our trouble: deliver it again later
	VerdictPoison    Verdict = "poison"    // it can never be applied: park it
)

// EventResult is one line of the answer to a delivered batch.
type EventResult struct {
	ID      string  `json:"id"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
}
