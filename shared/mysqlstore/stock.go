package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"seckill/shared/seckill"
)

// Stock returns a sale's units, or seckill.ErrNotFound.
func (s *Store) Stock(ctx context.Context, sale string) (seckill.Stock, error) {
	var stock seckill.Stock
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		stock, err = stockOf(ctx, s.db, sale)
		return missing(err)
	})
	if err != nil {
		return seckill.Stock{}, fmt.Errorf("stock of %s: %w", sale, err)
	}
	return stock, nil
}

func stockOf(ctx context.Context, q querier, sale string) (seckill.Stock, error) {
	var k seckill.Stock
	err := get(q.QueryRowContext(ctx, `SELECT opened, available, seq, placed, version FROM stock WHERE sale = ?`, sale),
		&k.Opened, &k.Available, &k.Seq, &k.Placed, &k.Version)
	return k, err
}

// openUnits puts n more units of a sale on sale; n may be negative, but never
// below what live orders hold: seckill.ErrConflict.
func openUnits(ctx context.Context, tx *sql.Tx, sale string, n int64) error {
	if n == 0 {
		return nil
	}
	rows, err := exec(ctx, tx, `
		UPDATE stock SET opened = opened + ?, available = available + ?, version = version + 1
		WHERE sale = ? AND available + ? >= 0`, n, n, sale, n)
	if err == nil && rows != 1 {
		return fmt.Errorf("%w: live orders hold more units than that", seckill.ErrConflict)
	}
	return err
}

// errShort: the stock has fewer units than were to be taken.
var errShort = errors.New("not enough units available")

// seen is what a sale's stock row is told of claims that were written: the
// greatest sequence, and how many were of the newest epoch among them.
type seen struct {
	seq, epoch, placed int64
}

// takeUnits takes n units of a sale out of stock, none if n is 0, and notes
// the claims that were seen. errShort: nothing was taken.
func takeUnits(ctx context.Context, tx *sql.Tx, sale string, n int64, s seen) error {
	rows, err := exec(ctx, tx, `
		UPDATE stock SET available = available - ?, version = version + 1, seq = GREATEST(seq, ?),
			placed = placed + CASE WHEN epoch = ? THEN ? ELSE 0 END
		WHERE sale = ? AND available >= ?`, n, s.seq, s.epoch, s.placed, sale, n)
	if err == nil && rows != 1 {
		return errShort
	}
	return err
}

// errUncounted: a row that must follow the orders does not add up. Nothing is
// committed; the audit finds the sale.
var errUncounted = errors.New("the sale's numbers do not add up")

// giveUnits puts n units of a sale back into stock.
func giveUnits(ctx context.Context, tx *sql.Tx, sale string, n int64) error {
	rows, err := exec(ctx, tx, `
		UPDATE stock SET available = available + ?, version = version + 1
		WHERE sale = ? AND available + ? <= opened`, n, sale, n)
	if err == nil && rows != 1 {
		return fmt.Errorf("give %d units back to %s: %w", n, sale, errUncounted)
	}
	return err
}
