package expirycron

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"seckill/shared/seckill"
)

// giveBack restocks the units of an outbox row in Redis and notes that in the
// row. It reports whether no unit of the row waits any more. A sale that Redis
// does not hold is no reason to wait: whoever builds it reads MySQL.
func (h *Handler) giveBack(ctx context.Context, row seckill.OutboxRow, r *Report) bool {
	if len(row.Returns) == 0 {
		return true
	}
	answers, err := h.reservations.Restock(ctx, row.Sale, row.Returns)
	if r.failed("restock "+row.Sale, err) || slices.Contains(answers, seckill.SettledFenced) {
		return false
	}
	r.Returned += len(row.Returns)
	return !r.failed("outbox", h.records.OutboxReturned(ctx, row.ID))
}

// drainOutbox finishes what transactions left: units to give back, events to
// publish. A row that cannot be finished waits; the rows behind it do not.
func (h *Handler) drainOutbox(ctx context.Context, r *Report) {
	after := int64(0)
	deaf := false // the broker takes no events: units are given back all the same
	for range h.config.RoundsMax {
		rows, err := h.records.Outbox(ctx, after, outboxRows, h.config.OutboxAfter)
		if r.failed("outbox", err) || len(rows) == 0 {
			return
		}
		after = rows[len(rows)-1].ID
		var done []int64
		var announce []seckill.Announcement
		for _, row := range rows {
			if h.giveBack(ctx, row, r) && !deaf {
				done = append(done, row.ID)
				announce = append(announce, row.Announce...)
			} else {
				r.Waiting++
			}
		}
		if deaf = deaf || r.failed("announce", h.queue.Announce(ctx, announce)); deaf {
			continue
		}
		r.Announced += len(announce)
		if r.failed("outbox", h.records.OutboxDone(ctx, done)) {
			return
		}
	}
}

// outboxRows is how many rows are read at a time; a row holds up to 500 events.
const outboxRows = 20

// republish publishes again what was lost on its way to the broker, or with the
// broker's store: claims that the claim log holds for too long. Being there for
// long is no sign of a loss while the broker has claims as old that are not
// answered yet, as in an outage of MySQL; then a loss shows only in numbers,
// when the log holds more claims than wait. So copies never outnumber claims.
// What was parked is the operator's.
func (h *Handler) republish(ctx context.Context, sales []seckill.Sale, r *Report) {
	waiting, oldest, err := h.queue.Waiting(ctx)
	if r.failed("republish", err) {
		return
	}
	if waiting > 0 && h.now().Sub(oldest) >= h.config.UnsettledAfter && h.unsettled(ctx, sales, waiting, r) <= waiting {
		return
	}
	parked, err := h.queue.ParkedClaims(ctx)
	if r.failed("republish", err) {
		return
	}
	// The attempt is the same for two minutes, the broker's duplicate window:
	// a claim is stored again at most once in that time.
	attempt := "r" + strconv.FormatInt(h.now().Unix()/120, 10)
	for _, sale := range sales {
		h.eachUnsettled(ctx, sale.ID, r, func(claims []seckill.AcceptedClaim) bool {
			claims = slices.DeleteFunc(claims, func(c seckill.AcceptedClaim) bool { return parked[c.Claim] })
			return h.publish(ctx, claims, attempt, r)
		})
	}
}

// unsettled counts the claims that are in the claim log for too long; it stops
// counting when there are more than enough.
func (h *Handler) unsettled(ctx context.Context, sales []seckill.Sale, enough uint64, r *Report) (n uint64) {
	for _, sale := range sales {
		h.eachUnsettled(ctx, sale.ID, r, func(claims []seckill.AcceptedClaim) bool {
			n += uint64(len(claims))
			return n <= enough
		})
	}
	return n
}

// eachUnsettled hands over the claims of a sale that are in the claim log for
// too long, in batches, until do returns false.
func (h *Handler) eachUnsettled(ctx context.Context, sale string, r *Report, do func([]seckill.AcceptedClaim) bool) {
	cursor := ""
	for range h.config.RoundsMax {
		claims, next, err := h.reservations.Unsettled(ctx, sale, cursor, h.config.UnsettledAfter, h.config.Batch)
		if errors.Is(err, seckill.ErrLost) {
			return // the next sweep fences and builds the sale
		}
		if r.failed("claim log of "+sale, err) || !do(claims) || next == "" {
			return
		}
		cursor = next
	}
}

// publish publishes claims and reports whether all of them are stored.
func (h *Handler) publish(ctx context.Context, claims []seckill.AcceptedClaim, attempt string, r *Report) bool {
	for _, ack := range h.queue.PublishClaims(ctx, claims, attempt) {
		select {
		case <-ack.Done():
		case <-ctx.Done():
			return false
		}
		if err := ack.Err(); r.failed("republish", err) {
			return false
		}
		if !ack.Duplicate() {
			r.Republished++
		}
	}
	return true
}
