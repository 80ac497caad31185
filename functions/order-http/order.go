package orderhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"seckill/shared/seckill"
)

// orderJSON is an order's document.
type orderJSON struct {
	ID          string              `json:"id"`
	Sale        string              `json:"sale"`
	SKU         string              `json:"sku"`
	Buyer       string              `json:"buyer"`
	Quantity    int64               `json:"quantity"`
	AmountMinor int64               `json:"amount_minor"`
	Currency    string              `json:"currency"`
	Status      seckill.OrderStatus `json:"status"`
	CreatedAt   time.Time           `json:"created_at"`
	PayBy       time.Time           `json:"pay_by,omitzero"`
	PaidAt      time.Time           `json:"paid_at,omitzero"`
	Reason      seckill.Reason      `json:"reason,omitempty"`
	Refund      *refundJSON         `json:"refund,omitempty"`
}

// refundJSON is what goes back of the order's payments, or went: done once all
// of it has.
type refundJSON struct {
	AmountMinor int64                `json:"amount_minor"`
	Status      seckill.RefundStatus `json:"status"`
}

func documentOf(o seckill.Order) orderJSON {
	return orderJSON{
		ID: o.ID, Sale: o.Sale, SKU: o.SKU, Buyer: o.Buyer, Quantity: o.Quantity,
		AmountMinor: o.AmountMinor, Currency: o.Currency, Status: o.Status,
		CreatedAt: o.CreatedAt, PayBy: o.PayBy, PaidAt: o.PaidAt, Reason: o.Reason,
	}
}

// document is the order's document with its refunds; one that is to be paid
// has none.
func (h *Handler) document(ctx context.Context, o seckill.Order) (orderJSON, error) {
	d := documentOf(o)
	if o.Status == seckill.OrderUnpaid {
		return d, nil
	}
	refunds, err := h.orders.RefundsOf(ctx, o.ID)
	if err != nil || len(refunds) == 0 {
		return d, err
	}
	d.Refund = &refundJSON{Status: seckill.RefundDone}
	for _, r := range refunds {
		d.Refund.AmountMinor += r.AmountMinor
		if r.Status == seckill.RefundDue {
			d.Refund.Status = seckill.RefundDue
		}
	}
	return d, nil
}

// read answers GET /orders/{id}: at once, or as a stream of what becomes of
// the order ("Accept: text/event-stream").
func (h *Handler) read(w http.ResponseWriter, r *http.Request) {
	buyer, err := h.identity.Buyer(r)
	if err != nil {
		fail(w, r, err)
		return
	}
	order, err := h.orderOf(r.Context(), r.PathValue("id"), buyer)
	if err != nil {
		fail(w, r, err)
		return
	}
	document, err := h.document(r.Context(), order)
	if err != nil {
		fail(w, r, err)
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		h.stream(w, r, document)
		return
	}
	answer(w, r, document)
}

// orderOf returns the buyer's order as it stands now by MySQL's clock.
// seckill.ErrPending: the claim is accepted but its order is not written yet.
// seckill.ErrNotFound: there is no such order, or it is another buyer's; both
// take the same way.
func (h *Handler) orderOf(ctx context.Context, id, buyer string) (seckill.Order, error) {
	if !seckill.ValidClaimID(id) {
		return seckill.Order{}, seckill.ErrNotFound
	}
	order, err := h.written(ctx, id, buyer)
	if !errors.Is(err, seckill.ErrNotFound) {
		return order, err
	}
	_, claim, err := h.claimOf(ctx, id, buyer)
	switch {
	case err != nil:
		return seckill.Order{}, err
	case claim.Status == seckill.ClaimReserved:
		return seckill.Order{}, seckill.ErrPending
	}
	return h.written(ctx, id, buyer) // it was settled, so written, meanwhile
}

func (h *Handler) written(ctx context.Context, id, buyer string) (seckill.Order, error) {
	order, now, err := h.orders.Order(ctx, id)
	if err != nil {
		return seckill.Order{}, err
	}
	if order.Buyer != buyer {
		return seckill.Order{}, seckill.ErrNotFound
	}
	return order.At(now), nil
}

// claimOf returns the buyer's claim; the AcceptedClaim is set while its status
// is reserved. seckill.ErrNotFound also for another buyer's;
// seckill.ErrUnavailable if Redis may have lost the claim, whose event may yet
// be on its way.
func (h *Handler) claimOf(ctx context.Context, id, buyer string) (seckill.AcceptedClaim, seckill.Claim, error) {
	sales, err := h.sales.list(ctx)
	if err != nil {
		return seckill.AcceptedClaim{}, seckill.Claim{}, err
	}
	accepted, claim, err := h.claims.FindAccepted(ctx, sales.ids, id)
	if errors.Is(err, seckill.ErrPending) {
		claim.Status, err = seckill.ClaimOrdered, nil
	}
	if err == nil && claim.Buyer != buyer || errors.Is(err, seckill.ErrNotFound) {
		err = h.trusted(ctx, sales.built)
		if err == nil {
			err = seckill.ErrNotFound
		}
	}
	return accepted, claim, err
}

// trusted returns seckill.ErrUnavailable unless Redis holds every sale, none
// being rebuilt: only then is a claim it does not know no claim.
func (h *Handler) trusted(ctx context.Context, sales []string) error {
	whole, err := h.claims.Stocks(ctx, sales)
	if err != nil {
		return err
	}
	for _, sale := range sales {
		if _, ok := whole[sale]; !ok {
			return fmt.Errorf("sale %s is not whole in redis: %w", sale, seckill.ErrUnavailable)
		}
	}
	return nil
}
