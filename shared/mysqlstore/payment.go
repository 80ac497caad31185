package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// Pay applies what a provider's verified callback says, once. Every callback
// is recorded, so money is never lost: what cannot pay the order starts its
// refund in the same transaction. The order is returned as it stands
// afterwards.
//
//   - PayApplied: the order is paid by this payment now.
//   - PayDuplicate: this callback or this payment was recorded before.
//   - PayMismatch: amount or currency differ from the order's, or the payment
//     belongs to another order; nothing but the record was written.
//   - PayRefundDue: the order is paid by another payment, cancelled, rejected,
//     refunded or past its deadline, swept or not; see RefundsOf.
//
// seckill.ErrPending: the order is not written (yet); nothing was recorded and
// the callback should come again. seckill.ErrKeyReused: the callback's id was
// used with another content. seckill.ErrInvalid: a value cannot be stored.
func (s *Store) Pay(ctx context.Context, p seckill.Payment) (seckill.Order, seckill.PayResult, error) {
	var order seckill.Order
	var result seckill.PayResult
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		order, result, err = pay(ctx, tx, p, at)
		return err
	})
	if isData(err) {
		err = fmt.Errorf("%w: %w", seckill.ErrInvalid, err)
	}
	if err != nil {
		return seckill.Order{}, "", fmt.Errorf("pay order %s by callback %s: %w", p.Order, p.Callback, err)
	}
	return order, result, nil
}

// pay reads what is recorded before it reads the order, which is then never
// older than the record.
func pay(ctx context.Context, tx *sql.Tx, p seckill.Payment, at time.Time) (seckill.Order, seckill.PayResult, error) {
	var none seckill.Order
	seen, err := recorded(ctx, tx, p)
	if err != nil {
		return none, "", err
	}
	payee, err := payeeOf(ctx, tx, p)
	if err != nil {
		return none, "", err
	}
	o, err := orderOf(ctx, tx, p.Order)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return none, "", seckill.ErrPending
	case err != nil || seen:
		return o.At(at), seckill.PayDuplicate, err
	}
	var result seckill.PayResult
	switch {
	case p.AmountMinor != o.AmountMinor || p.Currency != o.Currency, payee != "" && payee != o.ID:
		result = seckill.PayMismatch
	case payee == o.ID:
		result = seckill.PayDuplicate
	default:
		if o, result, err = markPaid(ctx, tx, o, at); err != nil {
			return none, "", err
		}
	}
	if result == seckill.PayRefundDue {
		if err := addRefund(ctx, tx, o, refundOfLate(o, p), at); err != nil {
			return none, "", err
		}
	}
	return o.At(at), result, record(ctx, tx, p, result, at)
}

// refundOfLate is the refund of a payment that cannot pay the order.
func refundOfLate(o orderRow, p seckill.Payment) seckill.Refund {
	cause := seckill.RefundLate
	if !o.PaidAt.IsZero() {
		cause = seckill.RefundTwice
	}
	return seckill.Refund{
		Provider: p.Provider, Reference: p.Reference, AmountMinor: p.AmountMinor, Currency: p.Currency, Cause: cause,
	}
}

// recorded reports whether this callback was recorded before.
func recorded(ctx context.Context, tx *sql.Tx, p seckill.Payment) (bool, error) {
	old := seckill.Payment{Callback: p.Callback, Provider: p.Provider}
	err := get(tx.QueryRowContext(ctx, `
		SELECT order_id, reference, amount_minor, currency FROM payments WHERE provider = ? AND callback = ?`,
		p.Provider, p.Callback), &old.Order, &old.Reference, &old.AmountMinor, &old.Currency)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err == nil && old != p:
		return false, fmt.Errorf("%w: callback %s was for order %s", seckill.ErrKeyReused, p.Callback, old.Order)
	}
	return err == nil, err
}

// payeeOf returns the order whose money the payment is recorded as, under
// whatever callback; empty if it is new.
func payeeOf(ctx context.Context, tx *sql.Tx, p seckill.Payment) (order string, err error) {
	err = get(tx.QueryRowContext(ctx, `
		SELECT order_id FROM payments WHERE provider = ? AND reference = ? AND money = 1`,
		p.Provider, p.Reference), &order)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return order, err
}

// markPaid makes the order paid if it is unpaid and in time, and announces
// that; otherwise the money is to be given back.
func markPaid(ctx context.Context, tx *sql.Tx, o orderRow, at time.Time) (orderRow, seckill.PayResult, error) {
	n, err := exec(ctx, tx, `
		UPDATE orders SET status = ?, paid_at = ?, updated_at = ? WHERE id = ? AND status = ? AND pay_by > ?`,
		string(seckill.OrderPaid), at, at, o.ID, string(seckill.OrderUnpaid), at)
	if err != nil {
		return o, "", err
	}
	if n != 1 {
		o, err = orderOf(ctx, tx, o.ID)
		return o, seckill.PayRefundDue, err
	}
	o.Status, o.PaidAt = seckill.OrderPaid, at
	_, err = addOutbox(ctx, tx, []orderRow{o}, at)
	return o, seckill.PayApplied, err
}

// record keeps the callback. errRaced: the same one, or the same payment, is
// recorded already, which the next try will read.
func record(ctx context.Context, tx *sql.Tx, p seckill.Payment, result seckill.PayResult, at time.Time) error {
	_, err := exec(ctx, tx, `
		INSERT INTO payments (callback, order_id, provider, reference, amount_minor, currency, result, received_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
		p.Callback, p.Order, p.Provider, p.Reference, p.AmountMinor, p.Currency, string(result), at)
	return raced(err)
}
