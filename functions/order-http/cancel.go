package orderhttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"seckill/shared/seckill"
)

// restockTimeout bounds the giving back after a cancel was committed.
const restockTimeout = time.Second

// cancel answers POST /orders/{id}/cancel: 200 with the order, also when it
// was cancelled before; a paid one is refunding then, or refunded already. 409
// if it is expired or rejected.
func (h *Handler) cancel(w http.ResponseWriter, r *http.Request) {
	buyer, err := h.identity.Buyer(r)
	if err == nil {
		err = emptyBody(w, r)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	order, row, err := h.cancelled(r.Context(), r.PathValue("id"), buyer)
	if errors.Is(err, seckill.ErrConflict) {
		conflict(w, order)
		return
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	if err := h.restock(r.Context(), row); err != nil {
		slog.WarnContext(r.Context(), "units are left to the sweep", "order", order.ID, "outbox", row.ID, "err", err)
	}
	document, err := h.document(r.Context(), order)
	if err != nil { // the cancel stands; its refund shows later
		document = documentOf(order)
	}
	answer(w, r, document)
}

// cancelled cancels the buyer's order, or the claim it is not written for yet.
func (h *Handler) cancelled(ctx context.Context, id, buyer string) (seckill.Order, seckill.OutboxRow, error) {
	if !seckill.ValidClaimID(id) {
		return seckill.Order{}, seckill.OutboxRow{}, seckill.ErrNotFound
	}
	order, row, err := h.orders.Cancel(ctx, id, buyer)
	if !errors.Is(err, seckill.ErrNotFound) {
		return order, row, err
	}
	accepted, claim, err := h.claimOf(ctx, id, buyer)
	if err != nil {
		return seckill.Order{}, seckill.OutboxRow{}, err
	}
	if claim.Status != seckill.ClaimReserved { // it was settled, so written, meanwhile
		return h.orders.Cancel(ctx, id, buyer)
	}
	return h.orders.CancelUnwritten(ctx, accepted)
}

// restock gives the units back in Redis and notes that. It goes on when the
// buyer has hung up. Failing is no failure of the cancel: the outbox row
// stays, and the sweep does it.
func (h *Handler) restock(ctx context.Context, row seckill.OutboxRow) error {
	if row.ID == 0 || len(row.Returns) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restockTimeout)
	defer cancel()
	answers, err := h.claims.Restock(ctx, row.Sale, row.Returns)
	if err != nil {
		return fmt.Errorf("restock sale %s: %w", row.Sale, err)
	}
	for _, settled := range answers {
		if settled == seckill.SettledFenced {
			return fmt.Errorf("restock sale %s: it is being rebuilt: %w", row.Sale, seckill.ErrUnavailable)
		}
	}
	if err := h.orders.OutboxReturned(ctx, row.ID); err != nil {
		return fmt.Errorf("outbox row %d: %w", row.ID, err)
	}
	return nil
}
