package seckill

import "time"

// TicketKind says what a sale asks of a claim besides a buyer: nothing, or an
// entry ticket, which the open sale alone gives out.
type TicketKind string

// The kinds of tickets; the zero value asks for none.
const (
	TicketNone   TicketKind = ""
	TicketSigned TicketKind = "signed" // for the asking
	TicketWork   TicketKind = "work"   // for a solved puzzle
)

// Valid reports whether k is one of the kinds.
func (k TicketKind) Valid() bool {
	return k == TicketNone || k == TicketSigned || k == TicketWork
}

// Ticket is what a genuine ticket of a buyer in a sale says; the zero value is
// no ticket. Whether it lets a claim in is for claim.lua to say, which knows
// the sale's kind and epoch and has the clock.
type Ticket struct {
	Kind  TicketKind
	Epoch int64     // of the sale when it was given out
	Until time.Time // by Redis' clock
}

// Barred returns why the ticket does not enter a sale that asks for this kind
// at this epoch, "" if it does, its time aside.
func (t Ticket) Barred(kind TicketKind, epoch int64) Outcome {
	switch {
	case kind == TicketNone || t.Kind == kind && t.Epoch == epoch:
		return ""
	case t.Kind == TicketNone:
		return OutcomeNoTicket
	}
	return OutcomeOldTicket
}
