package seckillhttp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"seckill/shared/seckill"
)

// tick is how often the claims that somebody waits for are read, all of them in
// one round trip.
const tick = 50 * time.Millisecond

// results lets readers wait for the results of claims.
type results struct {
	config       Config
	reservations Reservations

	mu      sync.Mutex
	waiting map[string]map[string][]chan seckill.Claim // sale, claim, its readers
	count   int
	// watching is true while the goroutine of watch runs.
	watching bool
}

func newResults(config Config, reservations Reservations) *results {
	return &results{config: config, reservations: reservations, waiting: make(map[string]map[string][]chan seckill.Claim)}
}

// await returns the claim once it is settled, or as it was when wait or ctx
// ends or the server is about to stop, or at once when too many readers wait already.
func (r *results) await(ctx context.Context, draining <-chan struct{}, claim seckill.Claim, wait time.Duration) seckill.Claim {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	settled := make(chan seckill.Claim, 1)
	if !r.join(claim, settled) { //nolint:contextcheck // one watch serves all readers
		return claim
	}
	defer r.leave(claim, settled)
	select {
	case claim = <-settled:
	case <-ctx.Done():
	case <-draining:
	}
	return claim
}

func (r *results) join(claim seckill.Claim, settled chan seckill.Claim) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count >= r.config.WaitersMax {
		return false
	}
	if !r.watching {
		r.watching = true
		go r.watch()
	}
	r.count++
	sale := r.waiting[claim.Sale]
	if sale == nil {
		sale = make(map[string][]chan seckill.Claim)
		r.waiting[claim.Sale] = sale
	}
	sale[claim.ID] = append(sale[claim.ID], settled)
	return true
}

func (r *results) leave(claim seckill.Claim, settled chan seckill.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count--
	sale := r.waiting[claim.Sale]
	kept := sale[claim.ID][:0]
	for _, c := range sale[claim.ID] {
		if c != settled {
			kept = append(kept, c)
		}
	}
	sale[claim.ID] = kept
	if len(kept) == 0 {
		delete(sale, claim.ID)
	}
	if len(sale) == 0 {
		delete(r.waiting, claim.Sale)
	}
}

// watch reads the claims that are waited for until nobody waits.
func (r *results) watch() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for range ticker.C {
		r.mu.Lock()
		if r.count == 0 {
			r.watching = false
			r.mu.Unlock()
			return
		}
		wanted := make(map[string][]string, len(r.waiting))
		for sale, claims := range r.waiting {
			for id := range claims {
				wanted[sale] = append(wanted[sale], id)
			}
		}
		r.mu.Unlock()
		r.read(wanted)
	}
}

// read tells the readers of claims what is settled. What cannot be read tells
// nobody anything; the next tick reads again.
func (r *results) read(wanted map[string][]string) {
	ctx, cancel := context.WithTimeout(context.Background(), r.config.DecideTimeout)
	defer cancel()
	claims, err := r.reservations.ClaimsOfMany(ctx, wanted)
	if err != nil {
		slog.WarnContext(ctx, "results of claims cannot be read", "error", err)
	}
	for sale, settled := range claims {
		r.tell(sale, settled)
	}
}

func (r *results) tell(sale string, claims []seckill.Claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, claim := range claims {
		if claim.Status == seckill.ClaimReserved {
			continue
		}
		for _, settled := range r.waiting[sale][claim.ID] {
			select {
			case settled <- claim:
			default: // told already
			}
		}
	}
}
