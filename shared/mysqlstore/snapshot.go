package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// snapshotMax bounds Snapshot in all: an open snapshot keeps old row versions
// alive on the server.
const snapshotMax = 2 * time.Minute

// Snapshot reads a sale as of one instant: it passes all its orders, in any
// state, to each in chunks of at most size, and returns the stock of that same
// instant. Each runs while the snapshot's connection is held and must not call
// the store. A lost connection is an error, never a second instant; then each
// may have been called. seckill.ErrNotFound: there is no such sale.
func (s *Store) Snapshot(ctx context.Context, sale string, size int, each func([]seckill.Order) error) (seckill.Stock, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotMax)
	defer cancel()
	stock, err := s.snapshot(ctx, sale, size, each)
	if err != nil {
		return seckill.Stock{}, fmt.Errorf("snapshot of %s: %w", sale, blame(err))
	}
	return stock, nil
}

func (s *Store) snapshot(ctx context.Context, sale string, size int, each func([]seckill.Order) error) (seckill.Stock, error) {
	// The first SELECT sets the instant that all others see.
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return seckill.Stock{}, err
	}
	defer func() { _ = tx.Rollback() }()
	stock, err := stockOf(ctx, tx, sale)
	if err != nil {
		return stock, missing(err)
	}
	if size < 1 {
		return stock, errors.New("the chunk size must be positive")
	}
	for _, status := range seckill.OrderStatuses() { // the index (sale, status) holds the ids in order
		if err := eachChunk(ctx, tx, sale, status, size, each); err != nil {
			return stock, err
		}
	}
	return stock, nil
}

func eachChunk(ctx context.Context, tx *sql.Tx, sale string, status seckill.OrderStatus, size int, each func([]seckill.Order) error) error {
	for last := ""; ; {
		rows, err := tx.QueryContext(ctx, `
			SELECT `+orderColumns+` FROM orders WHERE sale = ? AND status = ? AND id > ? ORDER BY id LIMIT ?`,
			sale, string(status), last, size)
		orders, err := all(rows, err, func(rows *sql.Rows) (seckill.Order, error) {
			o, err := scanOrder(rows)
			return o.Order, err
		})
		if err != nil {
			return fmt.Errorf("read %s orders: %w", status, err)
		}
		if len(orders) > 0 {
			if err := each(orders); err != nil {
				return err
			}
		}
		if len(orders) < size {
			return nil
		}
		last = orders[len(orders)-1].ID
	}
}
