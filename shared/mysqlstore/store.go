// Package mysqlstore keeps sales, stock, orders, payments and the outbox in
// MySQL or MariaDB. MySQL is the record: whatever Redis says, no order is
// written that the rows and constraints here do not allow.
package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"seckill/shared/seckill"
)

// Config says where the database is.
type Config struct {
	DSN      string `envconfig:"MYSQL_DSN" secret:"true"`
	ConnsMax int    `envconfig:"MYSQL_CONNS_MAX" default:"8"`
}

// Store is safe for concurrent use.
type Store struct {
	db *sql.DB
}

// Open returns a store.
func Open(_ Config) (*Store, error) { return nil, errors.ErrUnsupported }

// Close ends all connections.
func (s *Store) Close() error { return s.db.Close() }

// Ping fails when the database is away or read-only.
func (s *Store) Ping(_ context.Context) error { return errors.ErrUnsupported }

// Migrate brings the schema up to date.
func (s *Store) Migrate(_ context.Context) error { return errors.ErrUnsupported }

// PutItem writes an item.
func (s *Store) PutItem(_ context.Context, _ seckill.Item) (seckill.Item, error) {
	return seckill.Item{}, errors.ErrUnsupported
}

// Item returns an item.
func (s *Store) Item(_ context.Context, _ string) (seckill.Item, error) {
	return seckill.Item{}, errors.ErrUnsupported
}

// Items lists items.
func (s *Store) Items(_ context.Context, _ int) ([]seckill.Item, error) {
	return nil, errors.ErrUnsupported
}

// PutSale inserts or amends a sale.
func (s *Store) PutSale(_ context.Context, _ seckill.Sale) (seckill.Sale, error) {
	return seckill.Sale{}, errors.ErrUnsupported
}

// Sale returns a sale.
func (s *Store) Sale(_ context.Context, _ string) (seckill.Sale, error) {
	return seckill.Sale{}, errors.ErrUnsupported
}

// SalesOf lists the sales of SKUs.
func (s *Store) SalesOf(_ context.Context, _ []string) ([]seckill.Sale, error) {
	return nil, errors.ErrUnsupported
}

// SalesToPrepare lists sales that open within ahead and are not archived.
func (s *Store) SalesToPrepare(_ context.Context, _ time.Duration) ([]seckill.Sale, error) {
	return nil, errors.ErrUnsupported
}

// NextEpoch moves a sale's epoch on.
func (s *Store) NextEpoch(_ context.Context, _ string, _ int64) (int64, error) {
	return 0, errors.ErrUnsupported
}

// Snapshot reads a sale's stock and orders as of one instant.
func (s *Store) Snapshot(_ context.Context, _ string, _ int, _ func([]seckill.Order) error) (seckill.Stock, error) {
	return seckill.Stock{}, errors.ErrUnsupported
}

// PlaceOrders turns accepted claims into orders.
func (s *Store) PlaceOrders(_ context.Context, _ []seckill.AcceptedClaim) ([]seckill.Placement, error) {
	return nil, errors.ErrUnsupported
}

// Order returns an order and MySQL's now.
func (s *Store) Order(_ context.Context, _ string) (seckill.Order, time.Time, error) {
	return seckill.Order{}, time.Time{}, errors.ErrUnsupported
}

// Cancel cancels an unpaid order.
func (s *Store) Cancel(_ context.Context, _, _ string) (seckill.Order, seckill.OutboxRow, error) {
	return seckill.Order{}, seckill.OutboxRow{}, errors.ErrUnsupported
}

// CancelUnwritten writes an order as cancelled.
func (s *Store) CancelUnwritten(_ context.Context, _ seckill.AcceptedClaim) (seckill.Order, seckill.OutboxRow, error) {
	return seckill.Order{}, seckill.OutboxRow{}, errors.ErrUnsupported
}

// Pay applies a payment.
func (s *Store) Pay(_ context.Context, _ seckill.Payment) (seckill.Order, seckill.PayResult, error) {
	return seckill.Order{}, "", errors.ErrUnsupported
}

// ExpireDue expires unpaid orders past their deadline, at most sizeMax.
func (s *Store) ExpireDue(_ context.Context, _ int) ([]seckill.OutboxRow, int, error) {
	return nil, 0, errors.ErrUnsupported
}

// Outbox lists outbox rows.
func (s *Store) Outbox(_ context.Context, _ int64, _ int, _ time.Duration) ([]seckill.OutboxRow, error) {
	return nil, errors.ErrUnsupported
}

// OutboxDone deletes outbox rows.
func (s *Store) OutboxDone(_ context.Context, _ []int64) error { return errors.ErrUnsupported }

// OutboxReturned marks a row's returns as done.
func (s *Store) OutboxReturned(_ context.Context, _ int64) error { return errors.ErrUnsupported }

// Stock returns a sale's stock.
func (s *Store) Stock(_ context.Context, _ string) (seckill.Stock, error) {
	return seckill.Stock{}, errors.ErrUnsupported
}

// UnitsByStatus sums a sale's units by order status.
func (s *Store) UnitsByStatus(_ context.Context, _ string) (map[seckill.OrderStatus]int64, error) {
	return nil, errors.ErrUnsupported
}

// OverLimit counts buyers above the limit of a sale.
func (s *Store) OverLimit(_ context.Context, _ string) (int64, error) {
	return 0, errors.ErrUnsupported
}
