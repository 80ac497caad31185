package seckill

import (
	"slices"
	"time"
)

// Order is the durable record a claim became. Its id is the claim's.
type Order struct {
	ID          string
	Sale        string
	SKU         string
	Buyer       string
	Quantity    int64
	PriceMinor  int64
	Currency    string
	Status      OrderStatus
	Reason      Reason // why it was rejected
	Seq         int64
	AcceptedAt  time.Time
	CreatedAt   time.Time
	PayBy       time.Time
	PaidAt      time.Time // zero unless it was paid
	AmountMinor int64
}

// OrderStatus is the closed set of an order's states.
type OrderStatus string

// The states of an order.
const (
	OrderUnpaid    OrderStatus = "unpaid"
	OrderPaid      OrderStatus = "paid"
	OrderCancelled OrderStatus = "cancelled"
	OrderExpired   OrderStatus = "expired"
	OrderRefunding OrderStatus = "refunding"
	OrderRefunded  OrderStatus = "refunded"
	OrderRejected  OrderStatus = "rejected"
)

// OrderStatuses lists every OrderStatus.
func OrderStatuses() []OrderStatus {
	return []OrderStatus{
		OrderUnpaid, OrderPaid, OrderCancelled, OrderExpired,
		OrderRefunding, OrderRefunded, OrderRejected,
	}
}

// Live reports whether the order holds its units.
func (s OrderStatus) Live() bool { return s == OrderUnpaid || s == OrderPaid }

// next is the state picture: unpaid → paid | cancelled | expired,
// paid → refunding → refunded. Everything else is final.
var next = map[OrderStatus][]OrderStatus{
	OrderUnpaid:    {OrderPaid, OrderCancelled, OrderExpired},
	OrderPaid:      {OrderRefunding},
	OrderRefunding: {OrderRefunded},
}

// Can reports whether an order may go from s to t.
func (s OrderStatus) Can(t OrderStatus) bool { return slices.Contains(next[s], t) }

// ClaimStatus is what the order's claim is called once it is settled.
func (s OrderStatus) ClaimStatus() ClaimStatus {
	switch s {
	case OrderUnpaid, OrderPaid:
		return ClaimOrdered
	case OrderRejected:
		return ClaimRejected
	case OrderCancelled, OrderExpired, OrderRefunding, OrderRefunded:
		return ClaimReleased
	}
	return ClaimReleased
}

// At returns the order as it stands at now: past its deadline an unpaid order
// is expired for everyone, whether or not the sweep has come by.
func (o Order) At(now time.Time) Order {
	if o.Status == OrderUnpaid && !now.Before(o.PayBy) {
		o.Status = OrderExpired
	}
	return o
}

// OrderState is what a watched order is at one instant: what its buyer may see
// changes only with it.
type OrderState struct {
	Status      OrderStatus
	RefundsDue  int64
	RefundsDone int64
}

// Return names the units that the order gives back.
func (o Order) Return() Return {
	return Return{Claim: o.ID, Buyer: o.Buyer, Quantity: o.Quantity}
}
