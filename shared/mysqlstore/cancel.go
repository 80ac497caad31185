package mysqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"seckill/shared/seckill"
)

// Cancel cancels the buyer's unpaid order, or starts the refund of his paid
// one, and puts its units back into stock in the same transaction. The outbox
// row returned says what is left to do: restock in Redis, then OutboxReturned.
// Cancelling again answers the order, an empty row (ID 0) and no error.
//
// seckill.ErrNotFound: there is no such order, or it is another buyer's.
// seckill.ErrConflict: the order is refused or past its deadline; it is
// returned as it stands now.
func (s *Store) Cancel(ctx context.Context, id, buyer string) (seckill.Order, seckill.OutboxRow, error) {
	var order seckill.Order
	var row seckill.OutboxRow
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		order, row, err = cancel(ctx, tx, id, buyer, at)
		return err
	})
	if err != nil {
		return order, seckill.OutboxRow{}, fmt.Errorf("cancel order %s: %w", id, err)
	}
	return order, row, nil
}

func cancel(ctx context.Context, tx *sql.Tx, id, buyer string, at time.Time) (seckill.Order, seckill.OutboxRow, error) {
	var none seckill.OutboxRow
	o, err := orderOf(ctx, tx, id)
	if err != nil {
		return seckill.Order{}, none, missing(err)
	}
	if o.Buyer != buyer {
		return seckill.Order{}, none, seckill.ErrNotFound
	}
	switch stands := o.At(at); stands.Status {
	case seckill.OrderUnpaid:
		err = cancelUnpaid(ctx, tx, &o, at)
	case seckill.OrderPaid:
		err = cancelPaid(ctx, tx, &o, at)
	case seckill.OrderCancelled, seckill.OrderRefunding, seckill.OrderRefunded:
		return stands, none, nil
	case seckill.OrderExpired, seckill.OrderRejected:
		return stands, none, fmt.Errorf("%w: the order is %s", seckill.ErrConflict, stands.Status)
	}
	if err != nil {
		return o.Order, none, err
	}
	rows, err := giveBack(ctx, tx, []orderRow{o}, at)
	if err != nil {
		return o.Order, none, err
	}
	return o.Order, rows[0], nil
}

func cancelUnpaid(ctx context.Context, tx *sql.Tx, o *orderRow, at time.Time) error {
	o.Status = seckill.OrderCancelled
	return execOnce(ctx, tx, `
		UPDATE orders SET status = ?, updated_at = ?
		WHERE id = ? AND buyer = ? AND status = ? AND pay_by > ?`,
		string(o.Status), at, o.ID, o.Buyer, string(seckill.OrderUnpaid), at)
}

// cancelPaid starts the refund of the payment that paid the order.
func cancelPaid(ctx context.Context, tx *sql.Tx, o *orderRow, at time.Time) error {
	o.Status = seckill.OrderRefunding
	err := execOnce(ctx, tx, `
		UPDATE orders SET status = ?, updated_at = ? WHERE id = ? AND buyer = ? AND status = ?`,
		string(o.Status), at, o.ID, o.Buyer, string(seckill.OrderPaid))
	if err != nil {
		return err
	}
	r := seckill.Refund{Cause: seckill.RefundCancelled}
	err = get(tx.QueryRowContext(ctx, `
		SELECT provider, reference, amount_minor, currency FROM payments WHERE applied_order = ?`, o.ID),
		&r.Provider, &r.Reference, &r.AmountMinor, &r.Currency)
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("order %s is paid by no payment: %w", o.ID, errUncounted)
	}
	if err != nil {
		return err
	}
	return addRefund(ctx, tx, *o, r, at)
}

// giveBack returns the units of orders that have just ceased to be live, and
// writes the outbox rows that pass it on, one for each sale. It sorts orders.
func giveBack(ctx context.Context, tx *sql.Tx, orders []orderRow, at time.Time) ([]seckill.OutboxRow, error) {
	if err := giveHeld(ctx, tx, orders); err != nil {
		return nil, err
	}
	slices.SortStableFunc(orders, func(a, b orderRow) int { return cmp.Compare(a.Sale, b.Sale) })
	var rows []seckill.OutboxRow
	units := map[string]int64{}
	for first, end := 0, 0; first < len(orders); first = end {
		for sale := orders[first].Sale; end < len(orders) && orders[end].Sale == sale; end++ {
			units[sale] += orders[end].Quantity
		}
		row, err := addOutbox(ctx, tx, orders[first:end], at)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	for _, row := range rows {
		if err := giveUnits(ctx, tx, row.Sale, units[row.Sale]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// CancelUnwritten cancels a claim whose order is not written yet: it writes
// the order as cancelled, so that the claim's event, which is still on its
// way, meets it. MySQL's stock is untouched, as it never gave these units; the
// outbox row returns them in Redis. If the order has been written meanwhile
// this is Cancel, with its errors; seckill.ErrConflict also if an order with
// this id exists for another claim.
func (s *Store) CancelUnwritten(ctx context.Context, claim seckill.AcceptedClaim) (seckill.Order, seckill.OutboxRow, error) {
	var order seckill.Order
	var row seckill.OutboxRow
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		old, err := orderOf(ctx, tx, claim.Claim)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			order, row, err = writeCancelled(ctx, tx, claim, at)
		case err != nil:
		case !old.matches(claim):
			err = fmt.Errorf("%w: the id belongs to another order", seckill.ErrConflict)
		default:
			order, row, err = cancel(ctx, tx, claim.Claim, claim.Buyer, at)
		}
		return err
	})
	if errors.Is(err, errRefused) {
		err = fmt.Errorf("%w: %w", seckill.ErrInvalid, err)
	}
	if err != nil {
		return order, seckill.OutboxRow{}, fmt.Errorf("cancel claim %s: %w", claim.Claim, err)
	}
	return order, row, nil
}

func writeCancelled(ctx context.Context, tx *sql.Tx, claim seckill.AcceptedClaim, at time.Time) (seckill.Order, seckill.OutboxRow, error) {
	o := newOrder(claim, max(claim.Limit, 1), at)
	o.Status, o.Reason = seckill.OrderCancelled, seckill.ReasonCancelled
	if err := insertOrders(ctx, tx, []orderRow{o}); err != nil {
		return seckill.Order{}, seckill.OutboxRow{}, err
	}
	row, err := addOutbox(ctx, tx, []orderRow{o}, at)
	if err != nil {
		return seckill.Order{}, seckill.OutboxRow{}, err
	}
	// It counts among the claims that Redis must know of, as if its event had
	// come: else Redis could forget another one unnoticed. Nothing is taken, so
	// only a sale that nobody knows has no row for it.
	err = takeUnits(ctx, tx, claim.Sale, 0, seen{seq: claim.Seq, epoch: claim.Epoch, placed: 1})
	if errors.Is(err, errShort) {
		err = nil
	}
	return o.Order, row, err
}
