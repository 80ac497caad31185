package mysqlstore

import (
	"context"
	"database/sql"
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
	stock, err := s.snapshot(ctx, sale, max(size, 1), each)
	if err != nil {
		return seckill.Stock{}, fmt.Errorf("snapshot of %s: %w", sale, blame(err))
	}
	return stock, nil
}

func (s *Store) snapshot(ctx context.Context, sale string, size int, each func([]seckill.Order) error) (seckill.Stock, error) {
	// The first SELECT sets the instant that all others see.
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return seckill.Stock{}, fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }()
	stock, err := stockOf(ctx, tx, sale)
	if err != nil {
		return stock, missing(err)
	}
	for _, status := range seckill.OrderStatuses() { // the index (sale, status) has the ids in order
		next := page{sale: sale, status: status, size: size}
		for more := true; more; {
			orders, err := next.read(ctx, tx)
			if err != nil {
				return stock, fmt.Errorf("read %s orders: %w", status, err)
			}
			if len(orders) > 0 {
				if err := each(orders); err != nil {
					return stock, err
				}
				next.after = orders[len(orders)-1].ID
			}
			more = len(orders) == size
		}
	}
	return stock, nil
}

// page names up to size orders of a sale in one state after an id.
type page struct {
	sale   string
	status seckill.OrderStatus
	after  string
	size   int
}

func (p page) read(ctx context.Context, tx *sql.Tx) ([]seckill.Order, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT `+orderColumns+` FROM orders FORCE INDEX (orders_sale)
		WHERE sale = ? AND status = ? AND id > ? ORDER BY id LIMIT ?`,
		p.sale, string(p.status), p.after, p.size)
	return all(rows, err, func(row scanner) (seckill.Order, error) {
		o, err := scanOrder(row)
		return o.Order, err
	})
}
