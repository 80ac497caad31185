package mysqlstore

import (
	"context"
	"fmt"

	"seckill/shared/seckill"
)

// UnitsByStatus sums a sale's units by the status of their orders as written;
// a status without orders is absent.
func (s *Store) UnitsByStatus(ctx context.Context, sale string) (map[seckill.OrderStatus]int64, error) {
	var units map[seckill.OrderStatus]int64
	err := s.retry(ctx, func(ctx context.Context) error {
		units = map[seckill.OrderStatus]int64{}
		rows, err := s.db.QueryContext(ctx, `
			SELECT status, CAST(SUM(quantity) AS SIGNED) FROM orders WHERE sale = ? GROUP BY status`, sale)
		_, err = all(rows, err, func(row scanner) (struct{}, error) {
			var status seckill.OrderStatus
			var n int64
			err := row.Scan(&status, &n)
			units[status] = n
			return struct{}{}, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("units by status of %s: %w", sale, err)
	}
	return units, nil
}

// OverLimit counts the buyers who hold more live units of a sale than its
// limit (law 3): always 0, or the schema failed. seckill.ErrNotFound: there is
// no such sale.
func (s *Store) OverLimit(ctx context.Context, sale string) (int64, error) {
	var n int64
	err := s.retry(ctx, func(ctx context.Context) error {
		of, err := saleOf(ctx, s.db, sale)
		if err != nil {
			return missing(err)
		}
		return get(s.db.QueryRowContext(ctx, `
			SELECT COUNT(*) FROM (
				SELECT buyer FROM orders WHERE sale = ? AND status IN (?, ?)
				GROUP BY buyer HAVING SUM(quantity) > ?
			) AS over_limit`,
			sale, string(seckill.OrderUnpaid), string(seckill.OrderPaid), of.Limit), &n)
	})
	if err != nil {
		return 0, fmt.Errorf("buyers over the limit of %s: %w", sale, err)
	}
	return n, nil
}
