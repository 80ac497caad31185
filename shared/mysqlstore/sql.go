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
	if err := q.QueryRowContext(ctx, `SELECT UTC_TIMESTAMP(3)`).Scan(&t); err != nil {
		return time.Time{}, fmt.Errorf("read the clock: %w", err)
	}
	return ms(t), nil
}

// changed returns how many rows a statement changed.
func changed(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// all reads every row with scan and closes the rows.
func all[T any](rows *sql.Rows, err error, scan func(*sql.Rows) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var list []T
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, row)
	}
	return list, rows.Err()
}
