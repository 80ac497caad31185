package mysqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// chunkMax bounds the rows of one statement and of one transaction's batch: at
// most 20 placeholders and some 700 bytes a row keep every statement far below
// the protocol's 65,535 placeholders and a packet of 1 MB.
const chunkMax = 500

// scanner is a row or rows.
type scanner interface{ Scan(dest ...any) error }

// querier is a transaction or the pool.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// marks returns n placeholders: "?,?,?".
func marks(n int) string {
	return strings.TrimSuffix(strings.Repeat("?,", n), ",")
}

// rowMarks returns n rows of width placeholders: "(?,?),(?,?)".
func rowMarks(n, width int) string {
	return strings.TrimSuffix(strings.Repeat("("+marks(width)+"),", n), ",")
}

// anys returns values as statement arguments after those in front.
func anys[T any](values []T, front ...any) []any {
	args := make([]any, 0, len(front)+len(values))
	args = append(args, front...)
	for _, v := range values {
		args = append(args, v)
	}
	return args
}

// ms cuts t to what a DATETIME(3) keeps: MySQL would round, MariaDB cut.
func ms(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// now reads the one clock that orders go by.
func now(ctx context.Context, q querier) (time.Time, error) {
	var t time.Time
	err := get(q.QueryRowContext(ctx, `SELECT UTC_TIMESTAMP(3)`), &t)
	return ms(t), err
}

// exec runs a statement and returns how many rows it changed.
func exec(ctx context.Context, tx *sql.Tx, query string, args ...any) (int64, error) {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, fmt.Errorf("execute: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, fmt.Errorf("count rows: %w", err)
	}
	return n, nil
}

// execOnce runs a guarded statement that must change exactly one row; if it
// changed none, the row is no longer as it was read: errRaced.
func execOnce(ctx context.Context, tx *sql.Tx, query string, args ...any) error {
	n, err := exec(ctx, tx, query, args...)
	if err == nil && n != 1 {
		return errRaced
	}
	return err
}

// get reads a single value or row; sql.ErrNoRows if there is none.
func get(row *sql.Row, dest ...any) error {
	if err := row.Scan(dest...); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return nil
}

// all reads every row with scan and closes the rows.
func all[T any](rows *sql.Rows, err error, scan func(scanner) (T, error)) ([]T, error) {
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var list []T
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, fmt.Errorf("read row: %w", err)
		}
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	return list, nil
}
