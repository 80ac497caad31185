package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"seckill/shared/seckill"
)

// PlaceOrders turns accepted claims into orders and answers in the order of
// the input. It is idempotent by claim id: a claim whose order exists in any
// state gets that order with New false. A claim that cannot become an order is
// written as a rejected one. Units are taken from stock in the transaction
// that writes the orders; a batch shares one transaction, up to 500 claims.
//
// A claim that can never be written is answered with a Placement.Poison and
// does not hold back the others. An error is our own trouble: then the
// placements of the claims before it are returned with it, those are durable;
// the rest is unknown and may be placed again.
func (s *Store) PlaceOrders(ctx context.Context, claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
	placed := make([]seckill.Placement, 0, len(claims))
	for chunk := range slices.Chunk(claims, chunkMax) {
		part, err := s.place(ctx, chunk)
		placed = append(placed, part...)
		if err != nil {
			return placed, fmt.Errorf("place order %s: %w", claims[len(placed)].Claim, err)
		}
	}
	return placed, nil
}

// place writes claims together, or, if one of them spoils that, in halves: so
// the bad row is found and judged alone.
func (s *Store) place(ctx context.Context, claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
	placed, err := s.placeTogether(ctx, claims)
	spoiled := errors.Is(err, errRefused) || errors.Is(err, errRaced)
	switch {
	case err == nil:
		return placed, nil
	case !spoiled:
		return nil, err
	case len(claims) == 1 && errors.Is(err, errRefused):
		return []seckill.Placement{{Poison: err.Error()}}, nil
	case len(claims) == 1:
		return nil, err
	}
	first, err := s.place(ctx, claims[:len(claims)/2])
	if err != nil {
		return first, err
	}
	second, err := s.place(ctx, claims[len(claims)/2:])
	return append(first, second...), err
}

// placeTogether writes claims in one transaction.
//
// It hopes first: no claim was placed before, no buyer is at his limit, there
// are units enough, as Redis said. The keys and the guarded UPDATE, which
// locks the stock row only at the end, tell if that was wrong; then the
// transaction runs again and looks at the orders, or locks the stock first to
// see which claims still fit.
func (s *Store) placeTogether(ctx context.Context, claims []seckill.AcceptedClaim) ([]seckill.Placement, error) {
	var placed []seckill.Placement
	look, exact := false, false
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		// The embedded engine's ROLLBACK spoils indexes, so nothing is tried there.
		look = look || s.connector.embedded.Load()
		b, err := readBatch(ctx, tx, claims, look)
		if err != nil {
			return err
		}
		if exact || b.mayRunShort() {
			if err := b.lockStock(ctx, tx); err != nil {
				return err
			}
		}
		b.judge()
		placed = b.placed
		err = b.write(ctx, tx)
		look = look || errors.Is(err, errRaced)
		if errors.Is(err, errShort) {
			exact = true
			return fmt.Errorf("%w: %w", errRaced, err)
		}
		return err
	})
	return placed, err
}

// write stores what judge decided.
func (b *batch) write(ctx context.Context, tx *sql.Tx) error {
	if len(b.fresh) == 0 {
		return nil
	}
	if err := insertOrders(ctx, tx, b.fresh); err != nil {
		return err
	}
	sales := slices.DeleteFunc(b.inOrder(), func(s *saleBatch) bool { return len(s.fresh) == 0 })
	for _, s := range sales {
		if s.sale.Limit > 1 {
			if err := addHeld(ctx, tx, s.sale, s.added); err != nil {
				return err
			}
		}
		n := newNote(s.fresh, b.at)
		if err := n.insert(ctx, tx); err != nil {
			return err
		}
	}
	for _, s := range sales {
		if err := s.takeUnits(ctx, tx); err != nil {
			return fmt.Errorf("take %d units of %s: %w", s.taken, s.sale.ID, err)
		}
	}
	return nil
}

// takeUnits settles the sale's stock row; the one of a sale that nobody knows
// is not there.
func (s *saleBatch) takeUnits(ctx context.Context, tx *sql.Tx) error {
	if !s.known {
		return nil
	}
	return takeUnits(ctx, tx, s.sale.ID, s.taken, s.seen)
}
