package mysqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

const refundColumns = `id, sale, order_id, provider, reference, amount_minor, currency, cause, status, tries, created_at, done_at`

func scanRefund(row scanner) (seckill.Refund, error) {
	var r seckill.Refund
	var doneAt sql.NullTime
	err := row.Scan(&r.ID, &r.Sale, &r.Order, &r.Provider, &r.Reference, &r.AmountMinor, &r.Currency,
		&r.Cause, &r.Status, &r.Tries, &r.CreatedAt, &doneAt)
	r.DoneAt = doneAt.Time
	return r, err
}

// addRefund starts to give a whole payment of an order back. errRaced: somebody
// else has started that.
func addRefund(ctx context.Context, tx *sql.Tx, o orderRow, r seckill.Refund, at time.Time) error {
	_, err := exec(ctx, tx, `
		INSERT INTO refunds (sale, order_id, provider, reference, amount_minor, currency, cause, due_at, created_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		o.Sale, o.ID, r.Provider, r.Reference, r.AmountMinor, r.Currency, string(r.Cause), at, at)
	return raced(err)
}

// RefundsDue lists refunds that the provider is to be asked for now, those
// that wait longest first, at most sizeMax. Whoever asks tells the outcome by
// RefundDone or RefundDelayed; two who ask at once ask for the same refund.
func (s *Store) RefundsDue(ctx context.Context, sizeMax int) ([]seckill.Refund, error) {
	var refunds []seckill.Refund
	err := s.retry(ctx, func(ctx context.Context) error {
		at, err := now(ctx, s.db)
		if err != nil {
			return err
		}
		rows, err := s.db.QueryContext(ctx, `
			SELECT `+refundColumns+` FROM refunds WHERE status = ? AND due_at <= ? ORDER BY due_at, id LIMIT ?`,
			string(seckill.RefundDue), at, min(max(sizeMax, 0), chunkMax))
		refunds, err = all(rows, err, scanRefund)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("refunds due: %w", err)
	}
	return refunds, nil
}

// RefundsPending counts the refunds that are not done, due now or later.
func (s *Store) RefundsPending(ctx context.Context) (int64, error) {
	var n int64
	err := s.retry(ctx, func(ctx context.Context) error {
		return get(s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM refunds WHERE status = ?`, string(seckill.RefundDue)), &n)
	})
	if err != nil {
		return 0, fmt.Errorf("refunds pending: %w", err)
	}
	return n, nil
}

// RefundsOf lists an order's refunds, oldest first: none for most, and more
// than one only if it was paid more than once.
func (s *Store) RefundsOf(ctx context.Context, order string) ([]seckill.Refund, error) {
	var refunds []seckill.Refund
	err := s.retry(ctx, func(ctx context.Context) error {
		rows, err := s.db.QueryContext(ctx, `
			SELECT `+refundColumns+` FROM refunds WHERE order_id = ? ORDER BY id LIMIT ?`, order, chunkMax)
		refunds, err = all(rows, err, scanRefund)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("refunds of order %s: %w", order, err)
	}
	return refunds, nil
}

// RefundDone notes that the money of a refund is back. An order that was
// cancelled after it was paid is refunded then, which is announced. Noting it
// again changes nothing.
func (s *Store) RefundDone(ctx context.Context, id int64) error {
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		return refundDone(ctx, tx, id, at)
	})
	if err != nil {
		return fmt.Errorf("refund %d is done: %w", id, err)
	}
	return nil
}

func refundDone(ctx context.Context, tx *sql.Tx, id int64, at time.Time) error {
	r, err := scanRefund(tx.QueryRowContext(ctx, `SELECT `+refundColumns+` FROM refunds WHERE id = ?`, id))
	if err != nil {
		return missing(err)
	}
	if r.Status == seckill.RefundDone {
		return nil
	}
	err = execOnce(ctx, tx, `UPDATE refunds SET status = ?, done_at = ? WHERE id = ? AND status = ?`,
		string(seckill.RefundDone), at, id, string(seckill.RefundDue))
	if err != nil || r.Cause != seckill.RefundCancelled {
		return err
	}
	o, err := orderOf(ctx, tx, r.Order)
	if err != nil {
		return err
	}
	err = execOnce(ctx, tx, `UPDATE orders SET status = ?, updated_at = ? WHERE id = ? AND status = ?`,
		string(seckill.OrderRefunded), at, o.ID, string(seckill.OrderRefunding))
	if err != nil {
		return err
	}
	o.Status = seckill.OrderRefunded
	_, err = addOutbox(ctx, tx, []orderRow{o}, at)
	return err
}

// refundWaitMax bounds the time between two tries of a refund.
const refundWaitMax = 10 * time.Minute

// RefundDelayed notes that the provider did not give a refund yet: it is due
// again after a time that doubles from 5 s to 10 min.
func (s *Store) RefundDelayed(ctx context.Context, r seckill.Refund) error {
	wait := refundWaitMax
	if r.Tries < 7 {
		wait = min(5*time.Second<<r.Tries, wait)
	}
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		_, err = exec(ctx, tx, `UPDATE refunds SET tries = ?, due_at = ? WHERE id = ? AND status = ? AND tries = ?`,
			r.Tries+1, at.Add(wait), r.ID, string(seckill.RefundDue), r.Tries)
		return err
	})
	if err != nil {
		return fmt.Errorf("delay refund %d: %w", r.ID, err)
	}
	return nil
}
