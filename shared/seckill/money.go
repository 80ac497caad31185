package seckill

import "time"

// PayResult is what a payment callback did.
type PayResult string

// The results of a payment callback.
const (
	PayApplied   PayResult = "applied"    // the order is paid now
	PayDuplicate PayResult = "duplicate"  // this callback, or this payment, was applied before
	PayRefundDue PayResult = "refund_due" // the money came too late or twice; it goes back
	PayMismatch  PayResult = "mismatch"   // amount or currency differ; recorded, not applied
)

// Payment is what a provider's verified callback says.
type Payment struct {
	// Callback is the provider's id of this message (webhook-id).
	Callback    string
	Order       string
	Provider    string
	Reference   string // the provider's id of the payment
	AmountMinor int64
	Currency    string
}

// RefundCause says why a payment goes back.
type RefundCause string

// The causes of a refund.
const (
	RefundCancelled RefundCause = "cancelled" // the buyer cancelled the paid order
	RefundLate      RefundCause = "late"      // the order was no longer to be paid
	RefundTwice     RefundCause = "twice"     // another payment had paid the order
)

// RefundStatus is how far a refund is.
type RefundStatus string

// The states of a refund.
const (
	RefundDue  RefundStatus = "due"  // the provider has not confirmed it yet
	RefundDone RefundStatus = "done" // the money is back
)

// Refund is a whole payment on its way back. There is at most one for each
// payment.
type Refund struct {
	// ID is the same however often the provider is asked: the idempotency key.
	ID          int64
	Sale        string
	Order       string
	Provider    string
	Reference   string // the provider's id of the payment
	AmountMinor int64
	Currency    string
	Cause       RefundCause
	Status      RefundStatus
	Tries       int64 // how often the provider was asked in vain
	CreatedAt   time.Time
	DoneAt      time.Time // zero until it is done
}

// Money sums up a sale's money in one currency, in minor units.
type Money struct {
	Currency string `json:"currency"`
	Received int64  `json:"received"` // by payments that were not refused
	Refunded int64  `json:"refunded"` // given back
	Due      int64  `json:"due"`      // to be given back
	Kept     int64  `json:"kept"`     // what the paid orders cost
}

// Balanced reports whether every received unit of money was given back, is to
// be given back, or pays for a live order.
func (m Money) Balanced() bool { return m.Received-m.Refunded-m.Due == m.Kept }
