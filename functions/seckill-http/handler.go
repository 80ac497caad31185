// Package seckillhttp takes claims and tells a claim's result. It decides
// nothing itself: Redis does, in lua/claim.lua.
package seckillhttp

import (
	"context"
	"net/http"

	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/ticket"
)

// Reservations decides claims and remembers them; redisstore.Store is one.
type Reservations interface {
	Claim(ctx context.Context, sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error)
	ClaimsOf(ctx context.Context, sale string, ids []string) ([]seckill.Claim, error)
	ClaimsOfMany(ctx context.Context, wanted map[string][]string) (map[string][]seckill.Claim, error)
	Known(ctx context.Context, sale string) (bool, error)
	Readable(ctx context.Context, sale string) (bool, error)
	Peek(ctx context.Context, sale string) (seckill.SalePeek, error)
	Claimants(ctx context.Context, sale string) (map[string]struct{}, seckill.SalePeek, error)
}

// Ack is the broker's pending answer to one published claim.
type Ack = interface {
	Done() <-chan struct{}
	Err() error
	Duplicate() bool
}

// Publisher hands accepted claims to the broker; natsqueue.Queue is one.
type Publisher interface {
	PublishBatch(ctx context.Context, claims []seckill.AcceptedClaim) []Ack
}

// Buyers tells who sends a request; identity.Verifier is one.
type Buyers interface {
	Buyer(r *http.Request) (string, error)
}

// Handler is the function as an http.Handler.
type Handler struct {
	config       Config
	reservations Reservations
	buyers       Buyers
	batches      *batches
	results      *results
	desk         *ticket.Desk
	routes       http.Handler
}

// New returns the function. It holds no connection of its own. It gives out no
// tickets and takes none (see TicketsBy).
func New(config Config, reservations Reservations, publisher Publisher, buyers Buyers) *Handler {
	h := &Handler{
		config:       config,
		reservations: reservations,
		buyers:       buyers,
		batches:      newBatches(config, reservations, publisher),
		results:      newResults(config, reservations),
		desk:         ticket.NewDesk(ticket.Config{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sales/{sale}/claims", h.postClaim)
	mux.HandleFunc("GET /sales/{sale}/claims/{claim}", h.getClaim)
	mux.HandleFunc("POST /sales/{sale}/ticket", h.postTicket)
	mux.HandleFunc("GET /sales/{sale}/ticket", h.getPuzzle)
	h.routes = problem.Routes(mux)
	return h
}

// TicketsBy has desk give out tickets and read them. It is called before the
// function serves, and returns it.
func (h *Handler) TicketsBy(desk *ticket.Desk) *Handler {
	h.desk = desk
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }
