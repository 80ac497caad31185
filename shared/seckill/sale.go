package seckill

import "time"

// Sale is a timed offer of one SKU at one price, with a limit per buyer.
type Sale struct {
	ID         string
	SKU        string
	PriceMinor int64
	Currency   string
	// Units is how many units are put on sale in total ("opened").
	Units int64
	// Limit is how many live units one buyer may hold.
	Limit     int64
	OpensAt   time.Time
	ClosesAt  time.Time
	PayWindow time.Duration
	// Paused stops claims without closing the sale.
	Paused bool
	// Ticket is what a claim needs to enter; it may change while the sale lives.
	Ticket TicketKind
	// Epoch counts how often Redis was built from MySQL; 0 means never.
	Epoch int64
	// Version grows by one with each change of the sale.
	Version int64
}

// SaleState is what a sale is at one instant.
type SaleState string

// The states of a sale.
const (
	SaleScheduled SaleState = "scheduled"
	SaleOpen      SaleState = "open"
	SalePaused    SaleState = "paused"
	SaleClosed    SaleState = "closed"
)

// State returns what the sale is at now.
func (s Sale) State(now time.Time) SaleState {
	switch {
	case !now.Before(s.ClosesAt):
		return SaleClosed
	case now.Before(s.OpensAt):
		return SaleScheduled
	case s.Paused:
		return SalePaused
	default:
		return SaleOpen
	}
}

// Archived reports whether Redis may have forgotten the sale at now.
func (s Sale) Archived(now time.Time) bool {
	return now.After(s.ClosesAt.Add(KeepAfterClose))
}

// Validate returns a *FieldError for the first unacceptable field.
func (s Sale) Validate() error {
	switch {
	case !ValidSlug(s.ID):
		return fieldError("id", "must be 1 to 64 of a-z, 0-9 and -")
	case !ValidSlug(s.SKU):
		return fieldError("sku", "must be 1 to 64 of a-z, 0-9 and -")
	case s.PriceMinor < 1 || s.PriceMinor > PriceMinorMax:
		return fieldError("price_minor", "must be 1 to %d", int64(PriceMinorMax))
	case !ValidCurrency(s.Currency):
		return fieldError("currency", "must be an ISO 4217 code like CNY")
	case s.Units < 1 || s.Units > UnitsMax:
		return fieldError("units", "must be 1 to %d", UnitsMax)
	case s.Limit < 1 || s.Limit > QuantityMax:
		return fieldError("limit", "must be 1 to %d", QuantityMax)
	case !s.Ticket.Valid():
		return fieldError("ticket", `must be "none", "signed" or "work"`)
	case s.OpensAt.IsZero():
		return fieldError("opens_at", "must be an RFC 3339 instant with offset")
	case !s.ClosesAt.After(s.OpensAt):
		return fieldError("closes_at", "must be after opens_at")
	case s.ClosesAt.Sub(s.OpensAt) > SaleLengthMax:
		return fieldError("closes_at", "must be within 366 days of opens_at")
	case s.PayWindow < PayWindowMin || s.PayWindow > PayWindowMax:
		return fieldError("pay_window", "must be %s to %s", PayWindowMin, PayWindowMax)
	}
	return nil
}

// Stock is what MySQL knows of a sale's units.
type Stock struct {
	// Opened is how many units were put on sale in total, Available how many
	// of them no live order holds.
	Opened    int64
	Available int64
	// Seq is the greatest claim sequence an order was written for.
	Seq int64
	// Placed counts the claims of the sale's present epoch that were written.
	Placed int64
	// Version grows by one with each change of the numbers.
	Version int64
}
