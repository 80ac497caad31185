package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of the sides that do without the store
	"github.com/google/uuid"

	"seckill/shared/seckill"
	"seckill/shared/servers"
)

// writers is how many write at the same time on the optimistic side.
const writers = 16

func (s *stage) openSQL(conns int) (*sql.DB, error) {
	db, err := sql.Open("mysql", s.mysql.DSN+"?interpolateParams=true&parseTime=true&time_zone=%27%2B00:00%27")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

const insertOrder = `INSERT INTO orders
	(id, sale, sku, buyer, quantity, buyer_limit, price_minor, currency, seq, accepted_at, created_at, pay_by) VALUES `

const orderValues = `(?, ?, ?, ?, 1, 1, 9900, 'CNY', ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))`

func orderArgs(sale string, n int64) ([]any, error) {
	id, err := uuid.NewV7()
	return []any{id.String(), sale, sale, "buyer-" + strconv.FormatInt(n, 10), n}, err
}

// optimisticSide is the way of the textbook: read the version, update where it
// is still that, insert the order, commit; again when somebody was faster.
func (s *stage) optimisticSide() (side, error) {
	db, err := s.openSQL(writers)
	var sale seckill.Sale
	return side{
		name: "optimistic lock, " + strconv.Itoa(writers) + " writers", parts: map[string]*servers.Process{"mariadb": &s.mysql.Process},
		before: func(ctx context.Context, _ time.Duration) (err error) {
			sale, err = s.sale(ctx, seckill.UnitsMax)
			return err
		},
		round: func(ctx context.Context, length time.Duration) (int64, time.Duration, error) {
			var done, next atomic.Int64
			var all sync.WaitGroup
			errs := make([]error, writers)
			began := time.Now()
			for w := range writers {
				all.Go(func() {
					for time.Since(began) < length && errs[w] == nil {
						var won bool
						if won, errs[w] = optimistic(ctx, db, sale.ID, next.Add(1)); won {
							done.Add(1)
						}
					}
				})
			}
			all.Wait()
			return done.Load(), time.Since(began), cmp.Or(errs...)
		},
		after: s.clearOrders,
	}, err
}

// optimistic tries to write one order; false means that somebody was faster.
func optimistic(ctx context.Context, db *sql.DB, sale string, n int64) (won bool, err error) {
	var available, version int64
	if err := db.QueryRowContext(ctx, `SELECT available, version FROM stock WHERE sale = ?`, sale).Scan(&available, &version); err != nil {
		return false, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return false, err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to undo
	result, err := tx.ExecContext(ctx, `UPDATE stock SET available = ?, version = version + 1 WHERE sale = ? AND version = ?`, available-1, sale, version)
	if err != nil {
		return false, err
	}
	if rows, err := result.RowsAffected(); err != nil || rows == 0 {
		return false, err
	}
	args, err := orderArgs(sale, n)
	if err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, insertOrder+orderValues, args...); err != nil {
		return false, err
	}
	return true, tx.Commit()
}

// rawSide does nothing but insert orders, many rows in a statement, a commit
// after each: what the database can do at best.
func (s *stage) rawSide(loops int) (side, error) {
	db, err := s.openSQL(loops)
	return side{
		name: fmt.Sprintf("raw insert, %d rows a commit, %d loops", batchEvents, loops), parts: map[string]*servers.Process{"mariadb": &s.mysql.Process},
		round: func(ctx context.Context, length time.Duration) (int64, time.Duration, error) {
			total := int64(length.Seconds() * ordersPerSecond)
			var next atomic.Int64
			var all sync.WaitGroup
			errs := make([]error, loops)
			began := time.Now()
			for w := range loops {
				all.Go(func() {
					for errs[w] == nil {
						first := next.Add(batchEvents) - batchEvents
						if first >= total {
							return
						}
						errs[w] = insertRaw(ctx, db, "raw-sale", first)
					}
				})
			}
			all.Wait()
			return next.Load() - int64(loops)*batchEvents, time.Since(began), cmp.Or(errs...)
		},
		after: s.clearOrders,
	}, err
}

func insertRaw(ctx context.Context, db *sql.DB, sale string, first int64) error {
	args := make([]any, 0, 5*batchEvents)
	for i := range int64(batchEvents) {
		more, err := orderArgs(sale, first+i)
		if err != nil {
			return err
		}
		args = append(args, more...)
	}
	values := strings.Repeat(orderValues+",", batchEvents)
	_, err := db.ExecContext(ctx, insertOrder+values[:len(values)-1], args...)
	return err
}
