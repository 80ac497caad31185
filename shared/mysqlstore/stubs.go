package mysqlstore

import (
	"context"
	"errors"

	"seckill/shared/seckill"
)

// Snapshot reads a sale's stock and orders as of one instant.
func (s *Store) Snapshot(_ context.Context, _ string, _ int, _ func([]seckill.Order) error) (seckill.Stock, error) {
	return seckill.Stock{}, errors.ErrUnsupported
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

// OverLimit counts buyers above the limit of a sale.
func (s *Store) OverLimit(_ context.Context, _ string) (int64, error) {
	return 0, errors.ErrUnsupported
}
