package expirycron

import (
	"context"
	"time"

	"seckill/shared/audit"
	"seckill/shared/rebuild"
	"seckill/shared/seckill"
)

// audit looks at every sale and names those for which a law does not hold.
func (h *Handler) audit(ctx context.Context, sales []seckill.Sale, r *Report) map[string]audit.Report {
	audited := make(map[string]audit.Report, len(sales))
	for _, sale := range sales {
		report, err := audit.Sale(ctx, h.records, h.reservations, sale.ID)
		if r.failed("audit "+sale.ID, err) {
			continue
		}
		audited[sale.ID] = report
		if !report.Laws.Hold() {
			r.Violations = append(r.Violations, sale.ID)
		}
	}
	return audited
}

// rest returns how long nothing needs a sweep, so that whoever triggers may let
// the function sleep; zero if the next one should come at the usual pace. It is
// a span and not an instant, since clocks differ.
//
// There is nothing to watch when this sweep found no work and left none over,
// and when each sale has nothing reserved and nothing unpaid and is either far
// from its opening or closed for a while. A payment that comes later than that
// is announced or given back by a sweep that comes after Config.RestMax at the
// latest.
func (h *Handler) rest(ctx context.Context, sales []seckill.Sale, audited map[string]audit.Report, r *Report) time.Duration {
	worked := r.Expired + r.Returned + r.Announced + r.Republished + r.Waiting + r.Refunded
	if worked > 0 || r.Refunding > 0 || len(r.Errors) > 0 || len(r.Violations) > 0 || r.Sales[rebuild.Fresh] < len(sales) {
		return 0
	}
	left, err := h.records.Outbox(ctx, 0, 1, 0)
	if r.failed("outbox", err) || len(left) > 0 {
		return 0
	}
	now, rest := h.now(), h.config.RestMax
	for _, sale := range sales {
		report := audited[sale.ID]
		if !report.AtRest || report.Orders[seckill.OrderUnpaid] > 0 {
			return 0
		}
		if until := sale.OpensAt.Add(-h.config.AwakeAhead).Sub(now); until > 0 {
			rest = min(rest, until)
		} else if now.Before(sale.ClosesAt.Add(h.config.RestAfterClose)) {
			return 0
		}
	}
	return rest
}
