package seckillhttp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/strictjson"
	"seckill/shared/ticket"
)

// ticketHeader carries a claim's ticket.
const ticketHeader = "Entry-Ticket"

// solutionMax bounds the body with a puzzle's solution, in bytes.
const solutionMax = 4096

// ticketJSON is a ticket's document.
type ticketJSON struct {
	Ticket    string    `json:"ticket"`
	ExpiresAt time.Time `json:"expires_at"`
}

// postTicket answers POST /sales/{sale}/ticket: with a ticket, or where one
// takes work and none was sent, with the puzzle.
func (h *Handler) postTicket(w http.ResponseWriter, r *http.Request) {
	holder, peek, ok := h.enter(w, r)
	if !ok {
		return
	}
	if peek.Ticket == seckill.TicketWork {
		if r.ContentLength == 0 {
			h.writePuzzle(w, holder, peek)
			return
		}
		var body struct {
			Altcha string `json:"altcha"`
		}
		err := strictjson.Decode(w, r, solutionMax, &body)
		if err == nil {
			err = h.desk.Check(holder, peek.Epoch, peek.Now, body.Altcha)
		}
		if err != nil {
			problem.Write(w, unsolved(err))
			return
		}
	}
	text, says := h.desk.Issue(holder, peek.Ticket, peek.Epoch, peek.Now)
	writeJSON(w, ticketJSON{Ticket: text, ExpiresAt: says.Until})
}

// getPuzzle answers GET /sales/{sale}/ticket: with the puzzle, 404 where a
// ticket takes none.
func (h *Handler) getPuzzle(w http.ResponseWriter, r *http.Request) {
	holder, peek, ok := h.enter(w, r)
	if !ok {
		return
	}
	if peek.Ticket != seckill.TicketWork {
		problem.Write(w, problem.Of(fmt.Errorf("puzzle of sale %s: %w", holder.Sale, seckill.ErrNotFound)))
		return
	}
	h.writePuzzle(w, holder, peek)
}

func (h *Handler) writePuzzle(w http.ResponseWriter, holder ticket.Holder, peek seckill.SalePeek) {
	puzzle, err := h.desk.Puzzle(holder, peek.Epoch, peek.Now)
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	writeJSON(w, puzzle)
}

// enter looks whether a buyer may have a ticket: the sale asks for one and is
// open by Redis' clock. If not, it has answered why.
func (h *Handler) enter(w http.ResponseWriter, r *http.Request) (ticket.Holder, seckill.SalePeek, bool) {
	sale := r.PathValue("sale")
	buyer, err := h.buyers.Buyer(r)
	if err == nil && !seckill.ValidSlug(sale) {
		err = fmt.Errorf("sale: %w", seckill.ErrNotFound)
	}
	var peek seckill.SalePeek
	if err == nil {
		peek, err = h.look(r.Context(), sale)
	}
	if err != nil {
		problem.Write(w, problem.Of(err))
		return ticket.Holder{}, peek, false
	}
	holder := ticket.Holder{Sale: sale, Buyer: buyer}
	switch {
	case peek.Ticket == seckill.TicketNone:
		problem.Write(w, problem.Of(fmt.Errorf("ticket of sale %s: %w", sale, seckill.ErrNotFound)))
	case peek.Now.Before(peek.OpensAt):
		writeDecision(w, seckill.Decision{Outcome: seckill.OutcomeNotOpen, OpensAt: peek.OpensAt})
	case !peek.Now.Before(peek.ClosesAt):
		writeDecision(w, seckill.Decision{Outcome: seckill.OutcomeClosed})
	case peek.Paused:
		writeDecision(w, seckill.Decision{Outcome: seckill.OutcomePaused})
	case h.desk.Shut():
		slog.ErrorContext(r.Context(), "the sale asks for tickets, and TICKET_SECRET is not set: it sells nothing", "sale", sale)
		problem.Write(w, problem.Of(seckill.ErrUnavailable))
	default:
		return holder, peek, true
	}
	return holder, peek, false
}

// look reads the sale, once for each ticket.
func (h *Handler) look(ctx context.Context, sale string) (seckill.SalePeek, error) {
	ctx, cancel := context.WithTimeout(ctx, h.config.DecideTimeout)
	defer cancel()
	peek, err := h.reservations.Peek(ctx, sale)
	if err == nil && !peek.Loaded {
		err = h.notLoaded(ctx, sale)
	}
	return peek, err
}

// unsolved answers a solution that buys no ticket.
func unsolved(err error) problem.Problem {
	switch {
	case errors.Is(err, ticket.ErrUnsolved):
		return problem.Problem{Status: http.StatusForbidden, Code: "work_required", Detail: "this does not solve a puzzle of yours in this sale"}
	case errors.Is(err, ticket.ErrExpired):
		return problem.Problem{Status: http.StatusForbidden, Code: "work_expired", Detail: "the puzzle's time is over; get another one"}
	}
	return problem.Of(err)
}

func writeJSON(w http.ResponseWriter, document any) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = jsonValue, noStoreValue
	_ = json.NewEncoder(w).Encode(document) // a client that is gone needs no answer
}
