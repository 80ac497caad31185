package expirycron

import (
	"context"
	"errors"
	"strconv"
	"time"

	"seckill/shared/seckill"
)

// giveBack restocks the units of an outbox row in Redis and notes that in the
// row. It reports whether no unit of the row waits any more.
func (h *Handler) giveBack(ctx context.Context, row seckill.OutboxRow, r *Report) bool {
	if len(row.Returns) == 0 {
		return true
	}
	answers, err := h.reservations.Restock(ctx, row.Sale, row.Returns)
	if r.failed("restock "+row.Sale, err) {
		return false
	}
	for _, answer := range answers {
		if answer == seckill.SettledFenced {
			return h.forgotten(ctx, row.Sale, r)
		}
	}
	r.Returned += len(row.Returns)
	return !r.failed("outbox", h.records.OutboxReturned(ctx, row.ID))
}

// forgotten reports whether Redis may have dropped the sale for good: then
// there is no stock to give units back to.
func (h *Handler) forgotten(ctx context.Context, id string, r *Report) bool {
	sale, err := h.records.Sale(ctx, id)
	if errors.Is(err, seckill.ErrNotFound) {
		return true
	}
	return !r.failed("outbox", err) && sale.Archived(h.now())
}

// drainOutbox finishes what transactions left: units to give back, events to
// publish. A row that cannot be finished waits; the rows behind it do not.
func (h *Handler) drainOutbox(ctx context.Context, r *Report) {
	after := int64(0)
	for range h.config.RoundsMax {
		rows, err := h.records.Outbox(ctx, after, outboxRows, h.config.OutboxAfter)
		if r.failed("outbox", err) || len(rows) == 0 {
			return
		}
		after = rows[len(rows)-1].ID
		var done []int64
		var announce []seckill.Announcement
		for _, row := range rows {
			if h.giveBack(ctx, row, r) {
				done = append(done, row.ID)
				announce = append(announce, row.Announce...)
			} else {
				r.Waiting++
			}
		}
		if r.failed("announce", h.queue.Announce(ctx, announce)) {
			return
		}
		r.Announced += len(announce)
		if r.failed("outbox", h.records.OutboxDone(ctx, done)) {
			return
		}
	}
}

// outboxRows is how many rows are read at a time; a row holds up to 500 events.
const outboxRows = 20

// republish publishes again what the claim log holds for too long: a claim
// whose publish was lost, with the process or with the broker's store. While
// claims wait to be delivered, being unsettled is no sign of a loss; then only
// claims as old as the window in which the broker drops repeats are published.
func (h *Handler) republish(ctx context.Context, sales []seckill.Sale, r *Report) {
	pending, _, err := h.queue.Backlog(ctx)
	if r.failed("backlog", err) {
		return
	}
	age := h.config.UnsettledAfter
	if pending > 0 {
		age = max(age, time.Minute)
	}
	// The attempt is the same for two minutes, the broker's duplicate window:
	// a claim is stored again at most once in that time.
	attempt := "r" + strconv.FormatInt(h.now().Unix()/120, 10)
	for _, sale := range sales {
		h.republishSale(ctx, sale.ID, age, attempt, r)
	}
}

func (h *Handler) republishSale(ctx context.Context, sale string, age time.Duration, attempt string, r *Report) {
	cursor := ""
	for range h.config.RoundsMax {
		claims, next, err := h.reservations.Unsettled(ctx, sale, cursor, age, h.config.Batch)
		if errors.Is(err, seckill.ErrLost) {
			return // the next sweep fences and builds the sale
		}
		if r.failed("republish "+sale, err) {
			return
		}
		for _, ack := range h.queue.PublishClaims(ctx, claims, attempt) {
			select {
			case <-ack.Done():
			case <-ctx.Done():
				return
			}
			if err := ack.Err(); r.failed("republish "+sale, err) {
				return
			}
			if !ack.Duplicate() {
				r.Republished++
			}
		}
		if next == "" {
			return
		}
		cursor = next
	}
}
