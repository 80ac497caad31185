package mysqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"time"
)

// How often a transaction is tried, and how long is waited in between: a
// random time up to a bound that doubles from retryMin to retryMax.
const (
	triesMax = 10
	retryMin = 4 * time.Millisecond
	retryMax = 250 * time.Millisecond
)

// inTx runs do in one READ COMMITTED transaction and commits it. On a
// deadlock, a lock wait that timed out (which undoes one statement only), a
// lost connection or errRaced everything is rolled back and do runs again from
// its start, so do must set what it returns anew each time.
//
// A failed COMMIT is neither success nor failure: it is returned as
// seckill.ErrUnavailable and not tried again.
func (s *Store) inTx(ctx context.Context, do func(context.Context, *sql.Tx) error) error {
	return s.retry(ctx, func(ctx context.Context) error {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		defer func() { _ = tx.Rollback() }() // does nothing after Commit
		if err := do(ctx, tx); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return &commitError{cause: err}
		}
		return nil
	})
}

// retry runs do, within callMax in all, until it ends with something other
// than passing trouble.
func (s *Store) retry(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	for try := 1; ; try++ {
		err := do(ctx)
		if err == nil || !isAgain(err) || try == triesMax {
			return blame(err)
		}
		if !pause(ctx, try) {
			return blame(fmt.Errorf("%w after %d tries, the last: %w", context.Cause(ctx), try, err))
		}
	}
}

// pause waits before the next try; false if the context ended first.
func pause(ctx context.Context, try int) bool {
	bound := min(retryMin<<(try-1), retryMax)
	timer := time.NewTimer(rand.N(bound)) //nolint:gosec // spreading retries needs no secret
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
