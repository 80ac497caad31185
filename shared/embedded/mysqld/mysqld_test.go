package mysqld_test

import (
	"context"
	"database/sql"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"seckill/shared/embedded/mysqld"
)

func TestTransactionsEndAsAsked(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := start(t)
	run(t, db, "CREATE TABLE n (id INT NOT NULL PRIMARY KEY, u INT NULL, UNIQUE KEY n_u (u))")
	for _, commit := range []bool{false, true} {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO n (id, u) VALUES (?, ?), (?, NULL), (3, NULL)", 1, 7, 2); err != nil {
			t.Fatal(err)
		}
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		want := map[bool]int{false: 0, true: 3}[commit]
		if got := count(t, db); got != want {
			t.Errorf("commit %v left %d rows, want %d", commit, got, want)
		}
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO n (id, u) VALUES (4, 7)"); err == nil {
		t.Error("a second row with the same unique value went in")
	}
}

// Two clients at once would lose updates; the server makes the second wait.
func TestOnlyOneConnectionIsLetIn(t *testing.T) {
	t.Parallel()
	dsn, stop, err := mysqld.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	first, second := open(t, dsn), open(t, dsn)
	run(t, first, "CREATE TABLE n (id INT NOT NULL PRIMARY KEY)")
	got := make(chan error, 1)
	go func() {
		_, err := second.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO n (id) VALUES (1)")
		got <- err
	}()
	run(t, first, "INSERT INTO n (id) VALUES (2)")
	select {
	case err := <-got:
		t.Errorf("the second connection was served beside the first: %v", err)
	default:
	}
	_ = first.Close()
	if err := <-got; err != nil {
		t.Errorf("after the first connection closed: %v", err)
	}
	if got := count(t, second); got != 2 {
		t.Errorf("%d rows, want both", got)
	}
}

// Several engines in one process share variables; the race detector watches.
func TestManyServersRunAtOnce(t *testing.T) {
	t.Parallel()
	for range 8 {
		t.Run("server", func(t *testing.T) {
			t.Parallel()
			db := start(t)
			run(t, db, "CREATE TABLE n (id INT NOT NULL PRIMARY KEY)")
			for range 10 {
				run(t, db, "INSERT INTO n (id) SELECT COUNT(*) FROM n")
			}
			if got := count(t, db); got != 10 {
				t.Errorf("%d rows, want 10", got)
			}
		})
	}
}

func start(t *testing.T) *sql.DB {
	t.Helper()
	dsn, stop, err := mysqld.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return open(t, dsn)
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(mysqld.ConnsMax)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func count(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM n").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
