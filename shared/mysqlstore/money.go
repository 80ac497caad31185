package mysqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"seckill/shared/seckill"
)

// MoneyOf sums up a sale's money as of one instant, a line for each currency
// that its buyers paid in, in their order.
func (s *Store) MoneyOf(ctx context.Context, sale string) ([]seckill.Money, error) {
	var sums []moneySum
	err := s.retry(ctx, func(ctx context.Context) error {
		rows, err := s.db.QueryContext(ctx, `
			SELECT 'received', p.currency, CAST(SUM(p.amount_minor) AS SIGNED)
			FROM orders AS o JOIN payments AS p ON p.order_id = o.id
			WHERE o.sale = ? AND p.money = 1 GROUP BY p.currency
			UNION ALL
			SELECT status, currency, CAST(SUM(amount_minor) AS SIGNED)
			FROM refunds WHERE sale = ? GROUP BY status, currency
			UNION ALL
			SELECT 'kept', currency, CAST(SUM(amount_minor) AS SIGNED)
			FROM orders WHERE sale = ? AND status = ? GROUP BY currency`,
			sale, sale, sale, string(seckill.OrderPaid))
		sums, err = all(rows, err, scanMoneySum)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("money of %s: %w", sale, err)
	}
	return moneyOf(sums), nil
}

// moneySum is what payments, refunds or orders of one currency add up to.
type moneySum struct {
	kind     string
	currency string
	minor    int64
}

func scanMoneySum(row scanner) (moneySum, error) {
	var m moneySum
	err := row.Scan(&m.kind, &m.currency, &m.minor)
	return m, err
}

func moneyOf(sums []moneySum) []seckill.Money {
	byCurrency := map[string]seckill.Money{}
	for _, sum := range sums {
		m := byCurrency[sum.currency]
		m.Currency = sum.currency
		switch sum.kind {
		case "received":
			m.Received = sum.minor
		case string(seckill.RefundDone):
			m.Refunded = sum.minor
		case string(seckill.RefundDue):
			m.Due = sum.minor
		case "kept":
			m.Kept = sum.minor
		}
		byCurrency[sum.currency] = m
	}
	list := make([]seckill.Money, 0, len(byCurrency))
	for _, currency := range slices.Sorted(maps.Keys(byCurrency)) {
		list = append(list, byCurrency[currency])
	}
	return list
}
