// Package orderconsumer turns accepted claims into orders. It takes them as
// CloudEvents over HTTP (binary, structured or batch mode), writes them in one
// transaction for all that wait, and then settles them in Redis.
package orderconsumer

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"seckill/shared/events"
	"seckill/shared/problem"
	"seckill/shared/seckill"
)

// Orders writes claims as orders; mysqlstore.Store is one. An error means
// unknown: any of the orders may have been written.
type Orders interface {
	PlaceOrders(ctx context.Context, claims []seckill.AcceptedClaim) ([]seckill.Placement, error)
}

// Reservations is told what became of claims; redisstore.Store is one.
type Reservations interface {
	Settle(ctx context.Context, sale string, settlements []seckill.Settlement) ([]seckill.Settled, error)
}

// Handler is the function as an http.Handler.
type Handler struct {
	config Config
	queue  *queue
}

// New returns the function. It holds no connection of its own.
func New(config Config, orders Orders, reservations Reservations) *Handler {
	return &Handler{config: config, queue: newQueue(config, orders, reservations)}
}

// ServeHTTP takes events at any path: a batch is answered 200 with a verdict
// for each event, a single event by the status that its verdict has.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, problem.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "allowed: POST"})
		return
	}
	if !h.trusted(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		problem.Write(w, problem.Problem{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: "events need the bearer token of their sender"})
		return
	}
	batch, isBatch, err := events.Read(r, h.config.BodyMax)
	if err != nil {
		problem.Write(w, notRead(err))
		return
	}
	results := h.judge(r.Context(), batch)
	if isBatch {
		writeResults(w, results)
		return
	}
	writeResult(w, results[0])
}

// trusted compares digests, so that the time it takes tells nothing.
func (h *Handler) trusted(r *http.Request) bool {
	if h.config.Secret == "" {
		return true
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(h.config.Secret))
	return bearer && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// notRead is the answer to a request that carries no events: what can never be
// read is not delivered again, a body that broke off is.
func notRead(err error) problem.Problem {
	p := problem.Problem{Detail: err.Error()}
	switch {
	case errors.Is(err, events.ErrNotEvent):
		p.Status, p.Code = http.StatusUnsupportedMediaType, "not_an_event"
	case errors.Is(err, events.ErrMalformed):
		p.Status, p.Code = http.StatusBadRequest, "malformed_event"
	case errors.Is(err, events.ErrTooLarge):
		p.Status, p.Code = http.StatusRequestEntityTooLarge, "too_large"
	default:
		p.Status, p.Code, p.RetryAfter = http.StatusServiceUnavailable, "unavailable", time.Second
	}
	return p
}

// judge gives each event of a delivery its verdict, in order.
func (h *Handler) judge(ctx context.Context, batch []events.Event) []seckill.EventResult {
	results := make([]seckill.EventResult, len(batch))
	claims := make([]seckill.AcceptedClaim, 0, len(batch))
	at := make([]int, 0, len(batch))
	for i, e := range batch {
		results[i].ID = e.ID
		claim, verdict, reason := read(e)
		if verdict != "" {
			results[i].Verdict, results[i].Reason = verdict, reason
			continue
		}
		claims, at = append(claims, claim), append(at, i)
	}
	if len(claims) == 0 {
		return results
	}
	for k, o := range h.queue.place(ctx, claims) {
		results[at[k]].Verdict, results[at[k]].Reason = o.verdict, o.reason
	}
	return results
}

// read returns the claim an event carries, or the verdict on an event that
// carries none.
func read(e events.Event) (seckill.AcceptedClaim, seckill.Verdict, string) {
	if e.Err != nil {
		return seckill.AcceptedClaim{}, seckill.VerdictPoison, e.Err.Error()
	}
	if e.Type != string(seckill.EventClaimAccepted) {
		return seckill.AcceptedClaim{}, seckill.VerdictIgnored, "type " + e.Type
	}
	claim, err := e.Claim()
	if err != nil {
		return claim, seckill.VerdictPoison, err.Error()
	}
	return claim, "", ""
}

func writeResults(w http.ResponseWriter, results []seckill.EventResult) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(events.AppendResults(make([]byte, 0, 128*len(results)), results))
}

// writeResult answers a single event in the way that brokers understand:
// 503 is delivered again, 422 never.
func writeResult(w http.ResponseWriter, result seckill.EventResult) {
	switch result.Verdict {
	case seckill.VerdictRetry:
		problem.Write(w, problem.Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: result.Reason, RetryAfter: time.Second})
	case seckill.VerdictPoison:
		problem.Write(w, problem.Problem{Status: http.StatusUnprocessableEntity, Code: "poison", Detail: result.Reason})
	case seckill.VerdictApplied, seckill.VerdictDuplicate, seckill.VerdictRejected, seckill.VerdictIgnored:
		writeResults(w, []seckill.EventResult{result})
	}
}
