package mysqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// ExpireDue expires unpaid orders whose deadline has passed by MySQL's clock,
// the oldest deadlines first, at most sizeMax and never more than 500, in one
// transaction. It returns one outbox row per sale, and how many orders it
// expired: 0 means that none is due, or that all of them are just being worked
// on by somebody else. It may run twice and at once.
func (s *Store) ExpireDue(ctx context.Context, sizeMax int) ([]seckill.OutboxRow, int, error) {
	var rows []seckill.OutboxRow
	var n int
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		due, err := lockDue(ctx, tx, at, min(max(sizeMax, 0), chunkMax))
		if err != nil {
			return fmt.Errorf("find due orders: %w", err)
		}
		n = len(due)
		rows, err = expire(ctx, tx, due, at)
		return err
	})
	if err != nil {
		return nil, 0, fmt.Errorf("expire due orders: %w", err)
	}
	return rows, n, nil
}

// lockDue locks due orders, passing over those that somebody else has locked:
// a buyer who is paying right now is not waited for. The indexes are named
// here and in expire so that no other rows are ever touched, whatever the
// table's statistics say.
func lockDue(ctx context.Context, tx *sql.Tx, at time.Time, sizeMax int) ([]orderRow, error) {
	rows, err := tx.QueryContext(ctx, `
		SELECT `+orderColumns+` FROM orders FORCE INDEX (orders_due)
		WHERE status = ? AND pay_by <= ? ORDER BY pay_by LIMIT ? FOR UPDATE SKIP LOCKED`,
		string(seckill.OrderUnpaid), at, sizeMax)
	return all(rows, err, scanOrder)
}

func expire(ctx context.Context, tx *sql.Tx, due []orderRow, at time.Time) ([]seckill.OutboxRow, error) {
	if len(due) == 0 {
		return nil, nil
	}
	ids := make([]string, len(due))
	for i := range due {
		ids[i] = due[i].ID
		due[i].Status = seckill.OrderExpired
	}
	n, err := exec(ctx, tx, "UPDATE orders FORCE INDEX (`PRIMARY`)"+`
		SET status = ?, updated_at = ? WHERE status = ? AND id IN (`+marks(len(ids))+`)`,
		anys(ids, string(seckill.OrderExpired), at, string(seckill.OrderUnpaid))...)
	if err != nil {
		return nil, err
	}
	if n != int64(len(ids)) {
		return nil, errRaced
	}
	return giveBack(ctx, tx, due, at)
}
