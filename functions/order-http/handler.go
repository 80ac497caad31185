// Package orderhttp lets buyers read, pay and cancel their orders, and takes
// the payment provider's callbacks.
package orderhttp

import (
	"context"
	"net/http"
	"time"

	"seckill/shared/payment"
	"seckill/shared/problem"
	"seckill/shared/seckill"
)

// Orders is the record of orders: MySQL.
type Orders interface {
	// Order returns an order and MySQL's now; seckill.ErrNotFound if there is none.
	Order(ctx context.Context, id string) (seckill.Order, time.Time, error)
	// Cancel cancels the buyer's order; the row names what is left to do, its
	// ID is 0 if nothing is. ErrNotFound also for another buyer's order;
	// ErrConflict, with the order, if it is expired or rejected. A paid order
	// starts its refund.
	Cancel(ctx context.Context, id, buyer string) (seckill.Order, seckill.OutboxRow, error)
	// CancelUnwritten writes a claim's order as cancelled, or cancels it if it
	// has been written meanwhile.
	CancelUnwritten(ctx context.Context, claim seckill.AcceptedClaim) (seckill.Order, seckill.OutboxRow, error)
	// Pay applies a verified callback once; ErrPending if there is no such
	// order yet.
	Pay(ctx context.Context, p seckill.Payment) (seckill.Order, seckill.PayResult, error)
	// OutboxReturned notes that the units an outbox row gives back are back.
	OutboxReturned(ctx context.Context, id int64) error
	// RefundsOf lists what goes back, or went, of an order's payments.
	RefundsOf(ctx context.Context, order string) ([]seckill.Refund, error)
	// OrderStates tells the states of orders now; one that is not written is
	// absent.
	OrderStates(ctx context.Context, ids []string) (map[string]seckill.OrderState, error)
	// SalesToPrepare lists the sales that Redis holds.
	SalesToPrepare(ctx context.Context, ahead time.Duration) ([]seckill.Sale, error)
}

// Claims is the record of claims: Redis.
type Claims interface {
	// FindAccepted looks for a claim in the given sales. ErrNotFound if none
	// knows it; the AcceptedClaim is set while the claim is reserved;
	// ErrPending, with the claim, if it was settled while looking.
	FindAccepted(ctx context.Context, sales []string, id string) (seckill.AcceptedClaim, seckill.Claim, error)
	// Stocks returns the stock of those sales that Redis holds whole: loaded,
	// and not being rebuilt.
	Stocks(ctx context.Context, sales []string) (map[string]int64, error)
	Restock(ctx context.Context, sale string, returns []seckill.Return) ([]seckill.Settled, error)
}

// Identity tells who asks.
type Identity interface {
	Buyer(r *http.Request) (string, error)
}

// Provider takes payments.
type Provider interface {
	// Name is how the provider is called in records.
	Name() string
	// Start returns the payment of an order, the same one each time.
	Start(ctx context.Context, order seckill.Order) (payment.Started, error)
	// Verify returns the id of a callback, or an error if it is not genuine.
	Verify(header http.Header, body []byte) (id string, err error)
}

// Handler is the function's http.Handler. It is safe for concurrent use.
type Handler struct {
	orders   Orders
	claims   Claims
	identity Identity
	provider Provider
	sales    sales
	watches  *watches
	routes   http.Handler
}

// New returns a Handler. now is a clock for caching only: what an order is
// goes by MySQL's.
func New(orders Orders, claims Claims, identity Identity, provider Provider, now func() time.Time) *Handler {
	h := &Handler{
		orders: orders, claims: claims, identity: identity, provider: provider,
		sales: sales{orders: orders, now: now}, watches: newWatches(orders),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", h.read)
	mux.HandleFunc("POST /orders/{id}/cancel", h.cancel)
	mux.HandleFunc("POST /orders/{id}/payment", h.startPayment)
	mux.HandleFunc("POST /payments/callback", h.callback)
	h.routes = problem.Routes(mux)
	return h
}

// PaysAt has the function serve a provider's pages at /pay, for trying out. It
// is called before the function serves, and returns it.
func (h *Handler) PaysAt(pages http.Handler) *Handler {
	mux := http.NewServeMux()
	mux.Handle("/pay/", pages)
	mux.Handle("/", h.routes)
	h.routes = mux
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }
