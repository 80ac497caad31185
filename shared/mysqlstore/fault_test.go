package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// A COMMIT whose reply is lost is unknown, whether or not the server did it;
// doing the same again converges.
func TestCommitReplyLost(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("committed ", after), func(t *testing.T) {
			t.Parallel()
			p, dsn := throughProxy(t, testenv.MySQL(t))
			e := newEnv(t, engines[0], dsn)
			sale := e.sale(10, 2)
			c := claimOf(sale, "a", 2)
			lost := func(what string, err error) {
				t.Helper()
				if !errors.Is(err, seckill.ErrUnavailable) {
					t.Errorf("%s: %v", what, err)
				}
			}
			p.cutAt("COMMIT", after)
			_, err := e.PlaceOrders(t.Context(), []seckill.AcceptedClaim{c})
			lost("place", err)
			if got := e.place(c)[0]; got.New == after || got.Order.Status != seckill.OrderUnpaid {
				t.Errorf("placed again: %+v", got)
			}
			e.lawsHold(sale, 8)
			p.cutAt("COMMIT", after)
			_, _, err = e.Cancel(t.Context(), c.Claim, "a")
			lost("cancel", err)
			_, row, err := e.Cancel(t.Context(), c.Claim, "a")
			if err != nil || (row.ID == 0) != after {
				t.Errorf("cancelled again: %+v, %v", row, err)
			}
			e.lawsHold(sale, 10)
			paid := claimOf(sale, "b", 1)
			e.place(paid)
			p.cutAt("COMMIT", after)
			_, _, err = e.Pay(t.Context(), paymentOf(paid, "r"))
			lost("pay", err)
			want := seckill.PayApplied
			if after {
				want = seckill.PayDuplicate
			}
			e.pays(paymentOf(paid, "r"), want, seckill.OrderPaid)
			e.lawsHold(sale, 9)
			if p.cuts.Load() != 3 {
				t.Errorf("%d connections were cut", p.cuts.Load())
			}
		})
	}
}

// A connection that breaks before COMMIT is as good as a rollback: the
// transaction runs again as a whole.
func TestConnectionLostBeforeCommit(t *testing.T) {
	t.Parallel()
	p, dsn := throughProxy(t, testenv.MySQL(t))
	e := newEnv(t, engines[0], dsn)
	sale := e.sale(10, 2)
	for i, at := range []string{"INSERT INTO orders", "INSERT INTO holdings", "INSERT INTO outbox", "UPDATE stock"} {
		p.cutAt(at, i%2 == 0)
		if got := e.place(claimOf(sale, fmt.Sprint("b", i), 1))[0]; outcome(got) != "unpaid" {
			t.Errorf("cut at %s: %+v", at, got)
		}
		e.lawsHold(sale, int64(9-i))
	}
	if p.cuts.Load() != 4 {
		t.Errorf("%d connections were cut", p.cuts.Load())
	}
}

// A lock wait that times out undoes one statement only, so all of the
// transaction must be undone.
func TestLockWaitTimesOut(t *testing.T) {
	t.Parallel()
	dsn := testenv.MySQL(t)
	e := newEnv(t, engines[0], dsn)
	impatient, err := open(Config{DSN: dsn, ConnsMax: 8}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer impatient.Close() //nolint:errcheck // nothing to lose
	sale := e.sale(100, 1)
	old := claimsOf(sale, 2)
	e.place(old...)
	tx, err := e.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // ends the lock if the test failed
	if _, err := tx.ExecContext(t.Context(), `UPDATE stock SET seq = seq + 1 WHERE sale = ?`, sale.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	fresh := []seckill.AcceptedClaim{claimOf(sale, "x", 1), claimOf(sale, "y", 1)}
	together(3, func(i int) {
		var err error
		switch i {
		case 0:
			_, err = impatient.PlaceOrders(ctx, fresh)
		case 1:
			_, _, err = impatient.Cancel(ctx, old[0].Claim, old[0].Buyer)
		case 2:
			_, _, err = impatient.CancelUnwritten(ctx, old[1])
		}
		if !errors.Is(err, seckill.ErrUnavailable) {
			t.Errorf("%d with the stock row locked: %v", i, err)
		}
	})
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	e.lawsHold(sale, 98)
	for _, c := range fresh {
		if _, _, err := e.Order(t.Context(), c.Claim); !errors.Is(err, seckill.ErrNotFound) {
			t.Errorf("a half-written order: %v", err)
		}
	}
	e.place(fresh...)
	if _, _, err := e.Cancel(t.Context(), old[0].Claim, old[0].Buyer); err != nil {
		t.Error(err)
	}
	e.lawsHold(sale, 97)
}

// After a deadlock the server has undone everything, so everything runs again.
func TestDeadlockIsRunAgainAsAWhole(t *testing.T) {
	t.Parallel()
	e := onMariaDB(t)
	sale := e.sale(10, 1)
	c := claimOf(sale, "a", 1)
	e.place(c)
	tx, err := e.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() //nolint:errcheck // ends the locks if the test failed
	// Many changed rows make this transaction the dearer one to undo, so that
	// the store's is the victim.
	other := e.sale(1000, 1)
	if _, err := tx.ExecContext(t.Context(), `UPDATE stock SET seq = seq + 1 WHERE sale = ?`, sale.ID); err != nil {
		t.Fatal(err)
	}
	rows := make([]orderRow, 300)
	for i, c := range claimsOf(other, len(rows)) {
		rows[i] = newOrder(c, 1, ms(time.Now()))
	}
	if err := insertOrders(t.Context(), tx, rows); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := e.Cancel(t.Context(), c.Claim, "a")
		done <- err
	}()
	testenv.Eventually(t, 10*time.Second, func() error {
		if e.count(`SELECT COUNT(*) FROM information_schema.processlist
			WHERE db = DATABASE() AND id <> CONNECTION_ID() AND info LIKE '%UPDATE stock SET%'`) == 0 {
			return errors.New("the cancel does not wait for the stock row yet")
		}
		return nil
	})
	if _, err := tx.ExecContext(t.Context(), `UPDATE orders SET updated_at = ? WHERE id = ?`, ms(time.Now()), c.Claim); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	e.status(c.Claim, seckill.OrderCancelled)
	e.lawsHold(sale, 10)
}

// Two connections suffice for any number of callers: no transaction needs a
// second one.
func TestFewConnectionsManyCallers(t *testing.T) {
	t.Parallel()
	dsn := testenv.MySQL(t)
	e := newEnv(t, engine{conns: 2, racers: 100}, dsn)
	sale := e.sale(200, 1)
	claims := claimsOf(sale, 100)
	e.place(claims...)
	together(200, func(i int) {
		c := claims[i/2]
		var err error
		switch i % 4 {
		case 0:
			_, _, err = e.Cancel(t.Context(), c.Claim, c.Buyer)
		case 1:
			_, err = e.PlaceOrders(t.Context(), []seckill.AcceptedClaim{c})
		case 2:
			_, _, err = e.Pay(t.Context(), paymentOf(c, c.Claim))
		case 3:
			_, _, err = e.ExpireDue(t.Context(), 10)
		}
		if err != nil {
			t.Error(i, err)
		}
	})
	e.lawsHold(sale, 150)
}

func TestTroubleIsNeverAnAnswer(t *testing.T) {
	t.Parallel()
	server := func(code uint16) error { return fmt.Errorf("x: %w", &mysql.MySQLError{Number: code, Message: "m"}) }
	for _, err := range []error{
		server(1040), server(1205), server(1213), server(1290), server(1020), server(1053), server(1203),
		&commitError{cause: server(codeDuplicate)}, mysql.ErrInvalidConn, sql.ErrConnDone,
		context.DeadlineExceeded, context.Canceled, errRaced,
	} {
		if got := blame(err); !errors.Is(got, seckill.ErrUnavailable) || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, err := range []error{seckill.ErrNotFound, seckill.ErrConflict, seckill.ErrSuperseded, server(1146), errRefused} {
		if got := blame(err); errors.Is(got, seckill.ErrUnavailable) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if isAgain(&commitError{cause: server(codeDeadlock)}) {
		t.Error("a failed COMMIT would be tried again")
	}
}

// The loop gives up after a bounded number of tries, and at once when the
// caller does.
func TestRetriesAreBounded(t *testing.T) {
	t.Parallel()
	s := openStore(t, Config{DSN: "nobody@tcp(127.0.0.1:1)/nowhere", ConnsMax: 1})
	var tries atomic.Int64
	err := s.retry(t.Context(), func(context.Context) error { tries.Add(1); return errRaced })
	if tries.Load() != triesMax || !errors.Is(err, seckill.ErrUnavailable) || !errors.Is(err, errRaced) {
		t.Errorf("%d tries, %v", tries.Load(), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	tries.Store(0)
	err = s.retry(ctx, func(context.Context) error { tries.Add(1); cancel(); return errRaced })
	if tries.Load() != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d tries, %v", tries.Load(), err)
	}
	if slices.Contains(dataCodes, codeDuplicate) {
		t.Error("a duplicate is judged by its row, not as a bad value")
	}
}
