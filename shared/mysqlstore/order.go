package mysqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

const orderColumns = `id, sale, sku, buyer, quantity, price_minor, amount_minor, currency, status, reason, seq, accepted_at, created_at, pay_by, paid_at, buyer_limit`

// orderRow is an order with the limit it was written under, which says
// whether live_key (1) or holdings (more) count its units.
type orderRow struct {
	seckill.Order
	limit int64
}

func scanOrder(row scanner) (orderRow, error) {
	var o orderRow
	var paidAt sql.NullTime
	err := row.Scan(&o.ID, &o.Sale, &o.SKU, &o.Buyer, &o.Quantity, &o.PriceMinor, &o.AmountMinor, &o.Currency,
		&o.Status, &o.Reason, &o.Seq, &o.AcceptedAt, &o.CreatedAt, &o.PayBy, &paidAt, &o.limit)
	o.PaidAt = paidAt.Time
	return o, err
}

// newOrder is the unpaid order that a claim becomes at at.
func newOrder(c seckill.AcceptedClaim, limit int64, at time.Time) orderRow {
	return orderRow{limit: limit, Order: seckill.Order{
		ID: c.Claim, Sale: c.Sale, SKU: c.SKU, Buyer: c.Buyer, Quantity: c.Quantity,
		PriceMinor: c.PriceMinor, AmountMinor: c.AmountMinor(), Currency: c.Currency,
		Status: seckill.OrderUnpaid, Seq: c.Seq,
		AcceptedAt: ms(c.AcceptedAt), CreatedAt: at, PayBy: at.Add(c.PayWindow()),
	}}
}

// matches reports whether the order is what the claim became: same sale,
// buyer and quantity.
func (o orderRow) matches(c seckill.AcceptedClaim) bool {
	return o.ID == c.Claim && o.Sale == c.Sale && o.Buyer == c.Buyer && o.Quantity == c.Quantity
}

// insertOrders writes new orders, at most chunkMax. errRaced: an id or a
// buyer's live unit was there already; errRefused: a value breaks the schema.
func insertOrders(ctx context.Context, tx *sql.Tx, orders []orderRow) error {
	unpaid := make([]any, 0, len(orders)*orderWidth)
	var others []any
	for i := range orders {
		if o := &orders[i]; o.Status == seckill.OrderUnpaid {
			unpaid = o.appendTo(unpaid)
		} else {
			others = append(o.appendTo(others), string(o.Status), string(o.Reason))
		}
	}
	if err := insertValues(ctx, tx, "", orderWidth, unpaid); err != nil {
		return err
	}
	return insertValues(ctx, tx, ", status, reason", orderWidth+2, others)
}

// orderWidth is how many columns a new unpaid order needs: each one costs the
// server time to parse, so those with defaults are left out.
const orderWidth = 12

func (o *orderRow) appendTo(values []any) []any {
	return append(values, o.ID, o.Sale, o.SKU, o.Buyer, o.Quantity, o.PriceMinor, o.Currency,
		o.Seq, o.AcceptedAt, o.CreatedAt, o.PayBy, o.limit)
}

func insertValues(ctx context.Context, tx *sql.Tx, columns string, width int, values []any) error {
	if len(values) == 0 {
		return nil
	}
	_, err := exec(ctx, tx, `
		INSERT INTO orders (id, sale, sku, buyer, quantity, price_minor, currency,
			seq, accepted_at, created_at, pay_by, buyer_limit`+columns+`)
		VALUES `+rowMarks(len(values)/width, width), values...)
	if isData(err) {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return raced(err)
}

func orderOf(ctx context.Context, q querier, id string) (orderRow, error) {
	return scanOrder(q.QueryRowContext(ctx, `SELECT `+orderColumns+` FROM orders WHERE id = ?`, id))
}

// ordersByID reads the orders with these ids, at most chunkMax of them.
func ordersByID(ctx context.Context, q querier, ids []string) (map[string]orderRow, error) {
	rows, err := q.QueryContext(ctx, `SELECT `+orderColumns+` FROM orders WHERE id IN (`+marks(len(ids))+`)`, anys(ids)...)
	list, err := all(rows, err, scanOrder)
	byID := make(map[string]orderRow, len(list)+len(ids))
	for _, o := range list {
		byID[o.ID] = o
	}
	return byID, err
}

// Order returns an order as it is written, and the instant by MySQL's clock at
// which to look at it: Order.At(now) tells whether its deadline has passed.
// seckill.ErrNotFound: it is not written, or not yet.
func (s *Store) Order(ctx context.Context, id string) (seckill.Order, time.Time, error) {
	var o orderRow
	var at time.Time
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		if o, err = orderOf(ctx, s.db, id); err != nil {
			return missing(err)
		}
		at, err = now(ctx, s.db) // after the order, so never earlier than what it says
		return err
	})
	if err != nil {
		return seckill.Order{}, time.Time{}, fmt.Errorf("order %s: %w", id, err)
	}
	return o.Order, at, nil
}

// OrderStates tells the states of orders now, by MySQL's clock, of the first
// 500 ids; an order that is not written is absent.
func (s *Store) OrderStates(ctx context.Context, ids []string) (map[string]seckill.OrderState, error) {
	ids = ids[:min(len(ids), chunkMax)]
	states := make(map[string]seckill.OrderState, len(ids))
	if len(ids) == 0 {
		return states, nil
	}
	err := s.retry(ctx, func(ctx context.Context) error {
		rows, err := s.db.QueryContext(ctx, `
			SELECT o.id, CASE WHEN o.status = ? AND o.pay_by <= UTC_TIMESTAMP(3) THEN ? ELSE o.status END,
				(SELECT COUNT(*) FROM refunds AS r WHERE r.order_id = o.id AND r.status = ?),
				(SELECT COUNT(*) FROM refunds AS r WHERE r.order_id = o.id AND r.status = ?)
			FROM orders AS o WHERE o.id IN (`+marks(len(ids))+`)`,
			anys(ids, string(seckill.OrderUnpaid), string(seckill.OrderExpired),
				string(seckill.RefundDue), string(seckill.RefundDone))...)
		_, err = all(rows, err, func(row scanner) (struct{}, error) {
			var id string
			var state seckill.OrderState
			err := row.Scan(&id, &state.Status, &state.RefundsDue, &state.RefundsDone)
			states[id] = state
			return struct{}{}, err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("states of %d orders: %w", len(ids), err)
	}
	return states, nil
}
