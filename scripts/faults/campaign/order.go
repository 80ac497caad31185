package campaign

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"

	"seckill/shared/seckill"
)

// order is an order as MySQL has it at the end.
type order struct {
	seckill.Order
}

// late: its money came after the deadline and bought the units anew.
func (o order) late() bool { return o.Status == seckill.OrderPaid && o.PaidAt.After(o.PayBy) }

type paymentRow struct {
	amountMinor int64
	currency    string
	result      string
}

func readOrders(ctx context.Context, db *sql.DB, sale string) (map[string]order, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT id, sale, buyer, quantity, price_minor, amount_minor, currency, status, reason, accepted_at, created_at, pay_by, paid_at
		FROM orders WHERE sale = ?`, sale)
	if err != nil {
		return nil, fmt.Errorf("read the orders: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end
	found := map[string]order{}
	for rows.Next() {
		var o order
		var paid sql.NullTime
		if err := rows.Scan(&o.ID, &o.Sale, &o.Buyer, &o.Quantity, &o.PriceMinor, &o.AmountMinor, &o.Currency,
			&o.Status, &o.Reason, &o.AcceptedAt, &o.CreatedAt, &o.PayBy, &paid); err != nil {
			return nil, fmt.Errorf("read an order: %w", err)
		}
		o.PaidAt = paid.Time
		found[o.ID] = o
	}
	return found, rows.Err()
}

func readPayments(ctx context.Context, db *sql.DB, sale string) (map[string][]paymentRow, error) {
	rows, err := db.QueryContext(ctx, `
		SELECT p.order_id, p.amount_minor, p.currency, p.result FROM payments AS p JOIN orders AS o ON o.id = p.order_id WHERE o.sale = ?`, sale)
	if err != nil {
		return nil, fmt.Errorf("read the payments: %w", err)
	}
	defer rows.Close() //nolint:errcheck // read to its end
	found := map[string][]paymentRow{}
	for rows.Next() {
		var id string
		var p paymentRow
		if err := rows.Scan(&id, &p.amountMinor, &p.currency, &p.result); err != nil {
			return nil, fmt.Errorf("read a payment: %w", err)
		}
		found[id] = append(found[id], p)
	}
	return found, rows.Err()
}

// money: an order costs what the sale asked, a paid one is paid by exactly one
// payment of that amount, and no payment that was taken is without a record.
func (r *record) money() {
	for id, o := range r.orders {
		if want := r.offer.sale.PriceMinor * o.Quantity; o.AmountMinor != want || o.Currency != r.offer.sale.Currency {
			r.violate("money", "order %s costs %d %s, not %d %s", id, o.AmountMinor, o.Currency, want, r.offer.sale.Currency)
		}
		applied := 0
		for _, p := range r.payments[id] {
			if p.amountMinor != o.AmountMinor || p.currency != o.Currency {
				r.violate("money", "order %s of %d %s has a payment of %d %s", id, o.AmountMinor, o.Currency, p.amountMinor, p.currency)
			}
			if p.result == string(seckill.PayApplied) {
				applied++
			}
		}
		if paid := o.Status == seckill.OrderPaid; paid && applied != 1 || !paid && o.Status.Live() && applied != 0 {
			r.violate("money", "order %s is %s with %d applied payments", id, o.Status, applied)
		}
	}
	for _, a := range r.answers {
		if a.kind == askPay && a.code == http.StatusOK && len(r.payments[a.claim]) == 0 {
			r.violate("money", "the payment of order %s was taken at %s and is not recorded", a.claim, clock(a.end))
		}
	}
}
