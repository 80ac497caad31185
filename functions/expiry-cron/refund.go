package expirycron

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"seckill/shared/seckill"
)

// refundTimeout bounds one call of the provider; refundShare bounds it to a part
// of the time that all refunds of a sweep have, so that there is time left to
// note that a provider hung, and to ask for others.
const (
	refundTimeout = 5 * time.Second
	refundShare   = 4
)

// refund gives back what is due, each refund on its own: one that the provider
// does not give keeps no other from being tried, and is tried again later.
func (h *Handler) refund(ctx context.Context, r *Report) {
	for range h.config.RoundsMax {
		due, err := h.records.RefundsDue(ctx, h.config.Batch)
		if r.failed("refund", err) {
			return
		}
		for _, one := range due {
			if err := h.refundOne(ctx, one, r); r.failed("refund", err) {
				return
			}
		}
		if len(due) < h.config.Batch {
			break
		}
	}
	var err error
	r.Refunding, err = h.records.RefundsPending(ctx)
	r.failed("refund", err)
}

// refundOne asks the provider and notes what it says. A crash in between is
// harmless: the provider is asked again for the same refund.
func (h *Handler) refundOne(ctx context.Context, one seckill.Refund, r *Report) error {
	done, err := h.ask(ctx, one)
	if err != nil {
		slog.ErrorContext(ctx, "refund not given", "refund", one.ID, "order", one.Order, "tries", one.Tries+1, "err", err)
	}
	if !done {
		return h.records.RefundDelayed(ctx, one)
	}
	if err := h.records.RefundDone(ctx, one.ID); err != nil {
		return err
	}
	r.Refunded++
	return nil
}

func (h *Handler) ask(ctx context.Context, one seckill.Refund) (done bool, err error) {
	if h.provider == nil || h.provider.Name() != one.Provider {
		return false, fmt.Errorf("no provider %q here", one.Provider)
	}
	ctx, cancel := context.WithTimeout(ctx, min(refundTimeout, h.config.Timeout/refundShare))
	defer cancel()
	done, err = h.provider.Refund(ctx, one)
	return done && err == nil, err
}
