package expirycron

import (
	"context"
	"log/slog"

	"seckill/shared/audit"
	"seckill/shared/rebuild"
	"seckill/shared/seckill"
)

// Report counts what one sweep did.
type Report struct {
	// Sales counts the prepared sales by what was done to each.
	Sales map[rebuild.Outcome]int `json:"sales"`
	// Expired counts orders, Returned the claims whose units are back in
	// stock, Announced the published events, Republished the claims that
	// were published again.
	Expired     int `json:"expired"`
	Returned    int `json:"returned"`
	Announced   int `json:"announced"`
	Republished int `json:"republished"`
	// Waiting counts outbox rows that could not be finished yet.
	Waiting int `json:"waiting"`
	// Refunded counts the payments that were given back, Refunding those that
	// are still to be.
	Refunded  int   `json:"refunded"`
	Refunding int64 `json:"refunding"`
	// Violations names the sales for which a law does not hold.
	Violations []string `json:"violations"`
	Errors     []string `json:"errors"`
	// RestMS is for how long nothing needs a sweep, in milliseconds; 0 means
	// that the next one should come at the usual pace.
	RestMS int64 `json:"rest_ms"`
}

// failed notes that a part of the sweep failed; the other parts go on.
func (r *Report) failed(part string, err error) bool {
	if err == nil {
		return false
	}
	r.Errors = append(r.Errors, part+": "+err.Error())
	slog.Error("sweep", "part", part, "error", err)
	return true
}

// Sweep runs every part once. A part that fails does not keep the others from
// their work: Redis may be away while orders expire in MySQL.
func (h *Handler) Sweep(ctx context.Context) Report {
	r := Report{Sales: map[rebuild.Outcome]int{}, Violations: []string{}, Errors: []string{}}
	var sales []seckill.Sale
	listed := false // that none were says nothing about which there are
	var audited map[string]audit.Report
	for _, part := range []func(context.Context){
		func(ctx context.Context) { h.expire(ctx, &r) },
		func(ctx context.Context) { h.refund(ctx, &r) },
		func(ctx context.Context) { h.drainOutbox(ctx, &r) },
		func(ctx context.Context) {
			var err error
			sales, err = h.records.SalesToPrepare(ctx, h.config.PrepareAhead)
			listed = !r.failed("list sales", err)
		},
		func(ctx context.Context) {
			if listed {
				h.prepare(ctx, sales, &r)
			}
		},
		func(ctx context.Context) { h.republish(ctx, sales, &r) },
		func(ctx context.Context) { audited = h.audit(ctx, sales, &r) },
		func(ctx context.Context) { r.RestMS = h.rest(ctx, sales, audited, &r).Milliseconds() },
	} {
		h.within(ctx, part)
	}
	return r
}

// within gives a part of the sweep its own time, so that a store that hangs
// in one part leaves the others theirs.
func (h *Handler) within(ctx context.Context, part func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, h.config.Timeout)
	defer cancel()
	part(ctx)
}

// prepare brings every sale into Redis that should be there.
func (h *Handler) prepare(ctx context.Context, sales []seckill.Sale, r *Report) {
	ids := make([]string, len(sales))
	for i, sale := range sales {
		ids[i] = sale.ID
	}
	r.failed("register sales", h.reservations.Register(ctx, ids))
	builder := rebuild.Builder{Records: h.records, Reservations: h.reservations, Claims: h.queue}
	for _, sale := range sales {
		outcome, err := builder.Bring(ctx, sale.ID)
		if r.failed("prepare "+sale.ID, err) {
			continue
		}
		r.Sales[outcome]++
	}
}

// expire cancels the orders that are past their deadline, in bounded
// transactions, and gives their units back right after each.
func (h *Handler) expire(ctx context.Context, r *Report) {
	for range h.config.RoundsMax {
		rows, n, err := h.records.ExpireDue(ctx, h.config.Batch)
		if r.failed("expire", err) {
			return
		}
		r.Expired += n
		for _, row := range rows {
			h.giveBack(ctx, row, r)
		}
		if n < h.config.Batch {
			return
		}
	}
}
