package orderhttp

import (
	"context"
	"sync"
	"time"
)

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
