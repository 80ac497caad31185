// Package expirycron sweeps: with each trigger it cancels orders that were not
// paid in time, gives their units back, finishes whatever a crash left half
// done, and prepares the sales that are about to open.
package expirycron

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"seckill/shared/audit"
	"seckill/shared/problem"
	"seckill/shared/rebuild"
	"seckill/shared/seckill"
)

// Records is MySQL; mysqlstore.Store is one.
type Records interface {
	rebuild.Records
	audit.Records
	SalesToPrepare(ctx context.Context, ahead time.Duration) ([]seckill.Sale, error)
	ExpireDue(ctx context.Context, sizeMax int) ([]seckill.OutboxRow, int, error)
	Outbox(ctx context.Context, after int64, sizeMax int, minAge time.Duration) ([]seckill.OutboxRow, error)
	OutboxReturned(ctx context.Context, id int64) error
	OutboxDone(ctx context.Context, ids []int64) error
	Sale(ctx context.Context, id string) (seckill.Sale, error)
	RefundsDue(ctx context.Context, sizeMax int) ([]seckill.Refund, error)
	RefundsPending(ctx context.Context) (int64, error)
	RefundDone(ctx context.Context, id int64) error
	RefundDelayed(ctx context.Context, r seckill.Refund) error
}

// Reservations is Redis; redisstore.Store is one.
type Reservations interface {
	rebuild.Reservations
	Register(ctx context.Context, sales []string) error
	Restock(ctx context.Context, sale string, returns []seckill.Return) ([]seckill.Settled, error)
}

// Queue is the broker; natsqueue.Queue is one.
type Queue interface {
	rebuild.Claims
	Announce(ctx context.Context, announcements []seckill.Announcement) error
	Waiting(ctx context.Context) (n uint64, oldest time.Time, err error)
	ParkedClaims(ctx context.Context) (map[string]bool, error)
}

// Provider gives payments back.
type Provider interface {
	// Name is how the provider is called in records.
	Name() string
	// Refund gives a whole payment back, once for each refund's ID however
	// often it is called. done is false while the provider is at work on it.
	Refund(ctx context.Context, r seckill.Refund) (done bool, err error)
}

// Handler is the function as an http.Handler.
type Handler struct {
	config       Config
	records      Records
	reservations Reservations
	queue        Queue
	provider     Provider // nil: refunds wait
	now          func() time.Time
}

// New returns the function. It holds no connection and no state of its own:
// any number of sweeps may run at the same time.
func New(config Config, records Records, reservations Reservations, queue Queue, now func() time.Time) *Handler {
	return &Handler{config: config, records: records, reservations: reservations, queue: queue, now: now}
}

// RefundBy lets the sweeps give money back by a provider; without one, refunds
// wait. It is called before the first sweep and returns h.
func (h *Handler) RefundBy(provider Provider) *Handler {
	h.provider = provider
	return h
}

// ServeHTTP runs one bounded sweep for any POST, whatever its body, and
// answers with a Report: 200, or 503 if a part of the sweep failed and the
// trigger may come again.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, problem.Problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "allowed: POST"})
		return
	}
	// A trigger that hangs up does not stop a sweep half-way.
	report := h.Sweep(context.WithoutCancel(r.Context()))
	status := http.StatusOK
	if len(report.Errors) > 0 {
		status = http.StatusServiceUnavailable
		w.Header().Set("Retry-After", "1")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(report)
}
