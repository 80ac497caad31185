package orderhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
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
}

func documentOf(o seckill.Order) orderJSON {
	return orderJSON{
		ID: o.ID, Sale: o.Sale, SKU: o.SKU, Buyer: o.Buyer, Quantity: o.Quantity,
		AmountMinor: o.AmountMinor, Currency: o.Currency, Status: o.Status,
		CreatedAt: o.CreatedAt, PayBy: o.PayBy, PaidAt: o.PaidAt,
	}
}

// read answers GET /orders/{id}.
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
	answer(w, r, documentOf(order))
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

const (
	salesFresh   = time.Second
	salesTimeout = time.Second
	// salesAhead allows for a Redis whose clock is ahead of MySQL's.
	salesAhead = time.Minute
)

// sales remembers for a moment which sales Redis holds, as claims are found
// by sale.
type sales struct {
	orders Orders
	now    func() time.Time

	mu     sync.Mutex
	known  saleIDs
	readAt time.Time
}

// saleIDs are the sales that may have claims; those that were built in Redis
// before are there unless it lost them.
type saleIDs struct {
	ids   []string
	built []string
}

// list returns the sales; who comes while they are read waits for the same
// reading. An old list is better than none.
func (s *sales) list(ctx context.Context) (saleIDs, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.readAt.IsZero() && now.Sub(s.readAt) < salesFresh {
		return s.known, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), salesTimeout)
	defer cancel()
	list, err := s.orders.SalesToPrepare(ctx, salesAhead)
	if err != nil {
		if s.readAt.IsZero() {
			return saleIDs{}, err
		}
		return s.known, nil
	}
	var known saleIDs
	for _, sale := range list {
		known.ids = append(known.ids, sale.ID)
		if sale.Epoch > 0 {
			known.built = append(known.built, sale.ID)
		}
	}
	s.known, s.readAt = known, now
	return known, nil
}
