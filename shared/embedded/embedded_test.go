package embedded_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"seckill/shared/embedded"
)

func TestNATSKeepsItsStreamsInDir(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	publish := func(url string) *jetstream.PubAck {
		conn, err := nats.Connect(url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		cfg := jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage}
		if _, err := js.CreateOrUpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(ctx, "s", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return ack
	}
	for want := uint64(1); want <= 2; want++ {
		url, stop, err := embedded.NATS(dir)
		if err != nil {
			t.Fatal(err)
		}
		if ack := publish(url); ack.Sequence != want {
			t.Errorf("start %d: sequence %d", want, ack.Sequence)
		}
		stop()
		stop()
	}
}

func TestRedisClockIsTheRealOne(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	addr, stop, err := embedded.Redis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })

	before := time.Now().Add(-time.Millisecond)
	script := `local t = redis.call('TIME') return t[1] * 1000000 + t[2]`
	micros, err := rdb.Eval(ctx, script, []string{"k"}).Int64()
	if err != nil {
		t.Fatal(err)
	}
	if at := time.UnixMicro(micros); at.Before(before) || at.After(time.Now()) {
		t.Errorf("TIME inside a script is %s, want now (%s)", at, before)
	}
	if err := rdb.Set(ctx, "short", "v", 30*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(ctx, "long", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return rdb.Exists(ctx, "short").Val() == 0 })
	if rdb.Exists(ctx, "long").Val() != 1 {
		t.Error("the key with an hour to live is gone")
	}
}

func TestMySQLRollsBackAndCommits(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := openMySQL(t)
	exec(t, db, "CREATE TABLE n (id INT NOT NULL PRIMARY KEY, u INT NULL, UNIQUE KEY n_u (u))")
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
func TestMySQLLetsOneConnectionIn(t *testing.T) {
	t.Parallel()
	dsn, stop, err := embedded.MySQL()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	first, second := open(t, dsn), open(t, dsn)
	exec(t, first, "CREATE TABLE n (id INT NOT NULL PRIMARY KEY)")
	got := make(chan error, 1)
	go func() {
		_, err := second.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO n (id) VALUES (1)")
		got <- err
	}()
	exec(t, first, "INSERT INTO n (id) VALUES (2)")
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

func openMySQL(t *testing.T) *sql.DB {
	t.Helper()
	dsn, stop, err := embedded.MySQL()
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
	db.SetMaxOpenConns(embedded.MySQLConnsMax)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, query string) {
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

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it did not happen within 10 s")
		}
	}
}
