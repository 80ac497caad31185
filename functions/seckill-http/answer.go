package seckillhttp

import (
	"net/http"
	"strconv"
	"time"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

// The refusals that a hot sale gives most are written once.
var (
	soldOutAnswer   = problem.Prepare(problem.Problem{Status: http.StatusConflict, Code: "sold_out", Detail: "not enough units are left; units that are not paid for come back"})
	limitAnswer     = problem.Prepare(problem.Problem{Status: http.StatusForbidden, Code: "limit_reached", Detail: "this quantity would pass your limit in this sale"})
	noTicketAnswer  = problem.Prepare(problem.Problem{Status: http.StatusForbidden, Code: "ticket_required", Detail: "this sale takes claims with a ticket of their buyer; get it at /sales/{sale}/ticket"})
	oldTicketAnswer = problem.Prepare(problem.Problem{Status: http.StatusForbidden, Code: "ticket_expired", Detail: "the ticket does not count any more; get another one"})
	closedAnswer    = problem.Prepare(problem.Problem{Status: http.StatusGone, Code: "closed", Detail: "the sale is over"})
)

// writeDecision answers a claim attempt. This is the one place where an
// outcome becomes a status.
func writeDecision(w http.ResponseWriter, d seckill.Decision) {
	switch d.Outcome {
	case seckill.OutcomeReserved:
		status := http.StatusOK
		if d.Claim.Status == seckill.ClaimReserved || d.Claim.Status == seckill.ClaimOrdered {
			status = http.StatusAccepted
		}
		w.Header().Set("Location", "/sales/"+d.Claim.Sale+"/claims/"+d.Claim.ID)
		writeClaim(w, status, d.Claim)
	case seckill.OutcomeHeld:
		w.Header().Set("Content-Location", "/sales/"+d.Claim.Sale+"/claims/"+d.Claim.ID)
		writeClaim(w, http.StatusOK, d.Claim)
	case seckill.OutcomeNoTicket:
		noTicketAnswer.Write(w)
	case seckill.OutcomeOldTicket:
		oldTicketAnswer.Write(w)
	case seckill.OutcomeSoldOut:
		soldOutAnswer.Write(w)
	case seckill.OutcomeLimit:
		limitAnswer.Write(w)
	case seckill.OutcomeNotOpen:
		problem.Write(w, problem.Problem{
			Status: http.StatusTooEarly, Code: "not_open", Detail: "the sale has not opened yet",
			OpensAt: &d.OpensAt, RetryAfter: max(time.Until(d.OpensAt), time.Second),
		})
	case seckill.OutcomeClosed:
		closedAnswer.Write(w)
	case seckill.OutcomeRate:
		problem.Write(w, problem.Problem{Status: http.StatusTooManyRequests, Code: "rate_limited", Detail: "one attempt per buyer and second", RetryAfter: max(d.RetryIn, time.Second)})
	case seckill.OutcomeReused:
		problem.Write(w, problem.Of(seckill.ErrKeyReused))
	case seckill.OutcomePaused:
		problem.Write(w, problem.Problem{Status: http.StatusServiceUnavailable, Code: "paused", Detail: "the sale is paused", RetryAfter: 2 * time.Second})
	case seckill.OutcomeNotLoaded, seckill.OutcomeFenced, seckill.OutcomeCorrupt:
		problem.Write(w, problem.Of(seckill.ErrUnavailable))
	default:
		problem.Write(w, problem.Of(seckill.ErrUnavailable))
	}
}

// The values of a claim's headers, shared by the answers; nobody changes a
// header's values in place.
var (
	jsonValue    = []string{"application/json"}
	noStoreValue = []string{"no-store"}
)

// writeClaim writes the claim's document.
func writeClaim(w http.ResponseWriter, status int, c seckill.Claim) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = jsonValue, noStoreValue
	w.WriteHeader(status)
	_, _ = w.Write(appendClaim(make([]byte, 0, 256), c))
}

// appendClaim appends the claim's document to b. No value needs escaping:
// ids, buyers, states and reasons are of closed alphabets.
func appendClaim(b []byte, c seckill.Claim) []byte {
	b = append(b, `{"claim":"`...)
	b = append(b, c.ID...)
	b = append(b, `","sale":"`...)
	b = append(b, c.Sale...)
	b = append(b, `","buyer":"`...)
	b = append(b, c.Buyer...)
	b = append(b, `","quantity":`...)
	b = strconv.AppendInt(b, c.Quantity, 10)
	b = append(b, `,"status":"`...)
	b = append(b, c.Status...)
	b = append(b, '"')
	switch c.Status {
	case seckill.ClaimOrdered:
		b = append(b, `,"order":"`...)
		b = append(b, c.ID...)
		b = append(b, `","pay_by":"`...)
		b = c.PayBy.UTC().AppendFormat(b, "2006-01-02T15:04:05.000Z07:00")
		b = append(b, '"')
	case seckill.ClaimRejected:
		b = append(b, `,"reason":"`...)
		b = append(b, c.Reason...)
		b = append(b, '"')
	case seckill.ClaimReserved, seckill.ClaimReleased:
	}
	return append(b, '}', '\n')
}
