package seckill

import "time"

// ClaimRequest is one buyer's attempt, before it is decided.
type ClaimRequest struct {
	// ID is the claim this attempt becomes if it is accepted.
	ID       string
	Buyer    string
	Quantity int64
	// Key is the buyer's Idempotency-Key, empty if none was sent.
	Key string
	// Ticket is what the attempt's ticket says, if it has a genuine one.
	Ticket Ticket
}

// Outcome is how a claim attempt was decided.
type Outcome string

// The outcomes of a claim attempt. Each is a word that lua/claim.lua answers.
const (
	OutcomeReserved  Outcome = "reserved"        // accepted now, or this same id was accepted before
	OutcomeHeld      Outcome = "held"            // the buyer is at the limit: Claim is the one he holds
	OutcomeSoldOut   Outcome = "sold_out"        // not enough stock
	OutcomeLimit     Outcome = "limit_reached"   // would pass the buyer's limit
	OutcomeNotOpen   Outcome = "not_open"        // OpensAt says when
	OutcomeClosed    Outcome = "closed"          // the sale is over
	OutcomePaused    Outcome = "paused"          // the operator paused the sale
	OutcomeRate      Outcome = "rate"            // RetryIn says when to ask again
	OutcomeNoTicket  Outcome = "ticket_required" // the sale asks for a ticket
	OutcomeOldTicket Outcome = "ticket_expired"  // the ticket's time is over, or the sale was built anew or asks for another kind
	OutcomeReused    Outcome = "key_reused"      // the key or id belongs to another request
	OutcomeNotLoaded Outcome = "not_loaded"      // Redis does not hold the sale
	OutcomeFenced    Outcome = "fenced"          // the sale is being rebuilt
	OutcomeCorrupt   Outcome = "corrupt"         // the sale's numbers do not add up; the script fenced it
)

// Decision answers a ClaimRequest.
type Decision struct {
	Outcome Outcome
	// Claim is set for reserved and held.
	Claim Claim
	// Accepted is set when the claim is to be published: it was accepted by
	// this call, or it is asked for again and not settled yet.
	Accepted *AcceptedClaim
	// LogEntry is where a reserved claim that is asked for again stands in the
	// claim log.
	LogEntry string
	OpensAt  time.Time     // for not_open
	RetryIn  time.Duration // for rate, and for not_open by Redis' clock
	// Epoch and Seq date the decision: a later one of the sale has a higher
	// Epoch, or the same Epoch and at least the same Seq.
	Epoch int64
	Seq   int64
	// Stock is what was left after the batch that this decision belongs to.
	Stock int64
}

// SalePeek is a short look at a sale: enough to say that it is still sold out.
type SalePeek struct {
	// Open: the sale is loaded, not fenced, not paused, and inside its window.
	Open  bool
	Epoch int64
	Seq   int64
	Stock int64
	Limit int64
	// Claims counts the claims that were ever accepted; who is told that he has
	// none must be told of the same count.
	Claims int64
	// Loaded: Redis holds the sale and it is not fenced; else all is zero.
	Loaded   bool
	Paused   bool
	Ticket   TicketKind
	OpensAt  time.Time
	ClosesAt time.Time
	Now      time.Time // Redis' clock
}

// ClaimStatus is what became of an accepted claim.
type ClaimStatus string

// The states of a claim: reserved until it is settled.
const (
	ClaimReserved ClaimStatus = "reserved"
	ClaimOrdered  ClaimStatus = "ordered"
	ClaimRejected ClaimStatus = "rejected"
	ClaimReleased ClaimStatus = "released"
)

// Claim is what Redis knows of an accepted claim.
type Claim struct {
	ID       string
	Sale     string
	Buyer    string
	Quantity int64
	Status   ClaimStatus
	PayBy    time.Time // for ordered
	Reason   Reason    // for rejected
}

// Reason says why a claim that was accepted could not become an order.
type Reason string

// The reasons of a rejection. To add one: add it here and to Reasons, and
// answer it where it arises; the schema, documents and pages take any of these.
const (
	ReasonSoldOut      Reason = "sold_out"      // MySQL had no unit left
	ReasonLimitReached Reason = "limit_reached" // MySQL knew of other live units
	ReasonCancelled    Reason = "cancelled"     // cancelled before the order was written
	ReasonSaleUnknown  Reason = "sale_unknown"  // MySQL does not know the sale
	ReasonReleased     Reason = "released"      // parked, then given up by an operator
)

// Reasons lists every Reason.
func Reasons() []Reason {
	return []Reason{ReasonSoldOut, ReasonLimitReached, ReasonCancelled, ReasonSaleUnknown, ReasonReleased}
}

// AcceptedClaim is the data of the event seckill.claim.accepted.v1 and of a
// claim log entry: all that an order needs, fixed when the claim was accepted.
type AcceptedClaim struct {
	Claim       string    `json:"claim"`
	Sale        string    `json:"sale"`
	SKU         string    `json:"sku"`
	Buyer       string    `json:"buyer"`
	Quantity    int64     `json:"quantity"`
	PriceMinor  int64     `json:"price_minor"`
	Currency    string    `json:"currency"`
	PayWindowMS int64     `json:"pay_window_ms"`
	Limit       int64     `json:"limit"`
	Epoch       int64     `json:"epoch"`
	Seq         int64     `json:"seq"`
	AcceptedAt  time.Time `json:"accepted_at"`
}

// AmountMinor is what the claim's order costs.
func (c AcceptedClaim) AmountMinor() int64 { return c.PriceMinor * c.Quantity }

// PayWindow is how long the buyer has to pay once the order exists.
func (c AcceptedClaim) PayWindow() time.Duration {
	return time.Duration(c.PayWindowMS) * time.Millisecond
}

// Validate returns a *FieldError for the first field that no accepted claim
// can have; an event that fails it is poison.
func (c AcceptedClaim) Validate() error {
	switch {
	case !ValidClaimID(c.Claim):
		return fieldError("claim", "must be a lower-case UUID")
	case !ValidSlug(c.Sale):
		return fieldError("sale", "must be 1 to 64 of a-z, 0-9 and -")
	case !ValidSlug(c.SKU):
		return fieldError("sku", "must be 1 to 64 of a-z, 0-9 and -")
	case !ValidBuyer(c.Buyer):
		return fieldError("buyer", "must be 1 to 64 of A-Z, a-z, 0-9 and . _ @ : -")
	case c.Limit < 1 || c.Limit > QuantityMax:
		return fieldError("limit", "must be 1 to %d", QuantityMax)
	case c.Quantity < 1 || c.Quantity > c.Limit:
		return fieldError("quantity", "must be 1 to the limit")
	case c.PriceMinor < 1 || c.PriceMinor > PriceMinorMax:
		return fieldError("price_minor", "must be 1 to %d", int64(PriceMinorMax))
	case !ValidCurrency(c.Currency):
		return fieldError("currency", "must be an ISO 4217 code like CNY")
	case c.PayWindow() < PayWindowMin || c.PayWindowMS > PayWindowMax.Milliseconds():
		return fieldError("pay_window_ms", "must be %d to %d", PayWindowMin.Milliseconds(), PayWindowMax.Milliseconds())
	case c.Epoch < 1:
		return fieldError("epoch", "must be positive")
	case c.Seq < 1:
		return fieldError("seq", "must be positive")
	}
	return nil
}

// Placement is what MySQL made of an accepted claim. Order is the row that
// stands there now; New is false if it had been written before. Poison is set
// instead of Order when the claim can never be written, and says why: a value
// that the schema refuses, or an id that belongs to a different order.
type Placement struct {
	Order  Order
	New    bool
	Poison string
}

// Settlement tells Redis what became of a claim.
type Settlement struct {
	Claim    string
	Buyer    string
	Quantity int64
	// Status is ordered, rejected or released.
	Status ClaimStatus
	PayBy  time.Time
	Reason Reason
	// Epoch is that of the claim: one of Redis' own epoch that Redis does not
	// know shows that it lost data.
	Epoch int64
}

// Settlement derives what Redis must be told of the order that the claim became.
func (p Placement) Settlement(claim AcceptedClaim) Settlement {
	s := Settlement{
		Claim: p.Order.ID, Buyer: p.Order.Buyer, Quantity: p.Order.Quantity,
		Status: p.Order.Status.ClaimStatus(), Reason: p.Order.Reason, Epoch: claim.Epoch,
	}
	if s.Status == ClaimOrdered {
		s.PayBy = p.Order.PayBy
	}
	return s
}

// Return names a claim whose units go back to stock.
type Return struct {
	Claim    string `json:"claim"`
	Buyer    string `json:"buyer"`
	Quantity int64  `json:"quantity"`
}

// Settled is what settling or restocking one claim did in Redis.
type Settled string

// The answers of lua/settle.lua and lua/restock.lua.
const (
	SettledDone    Settled = "done"    // the state changed now
	SettledSame    Settled = "same"    // it had been so before; nothing changed
	SettledAdopted Settled = "adopted" // Redis had lost the claim; it knows it again
	SettledGone    Settled = "gone"    // Redis does not hold the sale; whoever builds it again reads MySQL
	SettledFenced  Settled = "fenced"  // the sale is being built; ask again later
)

// SaleHead is what Redis knows of a sale as a whole.
type SaleHead struct {
	// Loaded is false when Redis does not hold the sale at all.
	Loaded   bool
	Sale     Sale // as Redis holds it; Version is the amended version
	Stock    int64
	StockOK  bool // the stock is a number and Opened = Stock + Held - Debt
	Opened   int64
	Held     int64 // units in claims that are reserved or ordered
	Reserved int64 // units in claims not yet settled
	Debt     int64 // units adopted beyond the stock, paid by the next returns
	Seq      int64 // the last claim's sequence
	Accepted int64 // claims accepted in this epoch, as far as Redis knows
	Fence    Fence
	FenceAge time.Duration // by Redis' clock
	// FenceSeq is how far the claims in flight reach in stream CLAIMS, once it
	// was noted.
	FenceSeq   uint64
	FenceNoted bool
	Now        time.Time // Redis' clock
}

// Fence says why claims of a sale are not decided at the moment.
type Fence string

// The fences. Open means none.
const (
	FenceNone    Fence = ""
	FenceDrain   Fence = "drain"   // claims in flight are brought into MySQL first
	FenceRebuild Fence = "rebuild" // Redis is being built from MySQL
)
