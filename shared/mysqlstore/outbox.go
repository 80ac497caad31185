package mysqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"seckill/shared/seckill"
)

// addOutbox writes a row and sets its ID and CreatedAt.
func addOutbox(ctx context.Context, tx *sql.Tx, row *seckill.OutboxRow, at time.Time) error {
	returns, err := jsonList(row.Returns)
	if err != nil {
		return err
	}
	announce, err := jsonList(row.Announce)
	if err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, `
		INSERT INTO outbox (sale, returns, announce, created_at) VALUES (?, ?, ?, ?)`, row.Sale, returns, announce, at)
	if err != nil {
		return fmt.Errorf("write outbox: %w", err)
	}
	row.CreatedAt = at
	row.ID, err = result.LastInsertId()
	return err
}

// jsonList writes a list as text; none is an empty list.
func jsonList[T any](list []T) (string, error) {
	if len(list) == 0 {
		return "[]", nil
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// released is the outbox row of orders of one sale that gave their units back.
func released(orders []orderRow, at time.Time) seckill.OutboxRow {
	row := seckill.OutboxRow{Sale: orders[0].Sale}
	for _, o := range orders {
		row.Returns = append(row.Returns, o.Return())
		if a, ok := o.Announce(at); ok {
			row.Announce = append(row.Announce, a)
		}
	}
	return row
}

// Outbox lists the rows after the id after that are at least minAge old by
// MySQL's clock, in the order of their ids, at most sizeMax. A sweep starts
// from 0 each time: a row with a lower id may be committed later than one with
// a higher.
func (s *Store) Outbox(ctx context.Context, after int64, sizeMax int, minAge time.Duration) ([]seckill.OutboxRow, error) {
	var list []seckill.OutboxRow
	err := s.retry(ctx, func(ctx context.Context) error {
		at, err := now(ctx, s.db)
		if err != nil {
			return err
		}
		rows, err := s.db.QueryContext(ctx, `
			SELECT id, sale, returns, announce, created_at FROM outbox
			WHERE id > ? AND created_at <= ? ORDER BY id LIMIT ?`, after, at.Add(-minAge), sizeMax)
		list, err = all(rows, err, scanOutbox)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox after %d: %w", after, err)
	}
	return list, nil
}

// ReturnsPending reports whether units of a sale wait in the outbox to be
// given back in Redis.
func (s *Store) ReturnsPending(ctx context.Context, sale string) (bool, error) {
	var n int64
	err := s.retry(ctx, func(ctx context.Context) error {
		return s.db.QueryRowContext(ctx, `
			SELECT COUNT(*) FROM outbox WHERE sale = ? AND returns <> '[]'`, sale).Scan(&n)
	})
	if err != nil {
		return false, fmt.Errorf("pending returns of %s: %w", sale, err)
	}
	return n > 0, nil
}

func scanOutbox(rows *sql.Rows) (seckill.OutboxRow, error) {
	var row seckill.OutboxRow
	var returns, announce []byte
	if err := rows.Scan(&row.ID, &row.Sale, &returns, &announce, &row.CreatedAt); err != nil {
		return row, err
	}
	if err := json.Unmarshal(returns, &row.Returns); err != nil {
		return row, fmt.Errorf("returns of outbox row %d: %w", row.ID, err)
	}
	if err := json.Unmarshal(announce, &row.Announce); err != nil {
		return row, fmt.Errorf("announcements of outbox row %d: %w", row.ID, err)
	}
	return row, nil
}

// OutboxDone forgets rows whose work is done. Ids that are gone already are
// no error.
func (s *Store) OutboxDone(ctx context.Context, ids []int64) error {
	for chunk := range slices.Chunk(ids, chunkMax) {
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `DELETE FROM outbox WHERE id IN (`+marks(len(chunk))+`)`, anys(chunk)...)
			return err
		})
		if err != nil {
			return fmt.Errorf("finish %d outbox rows from %d: %w", len(chunk), chunk[0], err)
		}
	}
	return nil
}

// OutboxReturned notes that a row's returns are done; its announcements
// remain to be published. A row that is gone is no error.
func (s *Store) OutboxReturned(ctx context.Context, id int64) error {
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE outbox SET returns = '[]' WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish returns of outbox row %d: %w", id, err)
	}
	return nil
}
