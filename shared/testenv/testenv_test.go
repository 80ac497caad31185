package testenv_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestNameIsASlugOfItsOwn(t *testing.T) {
	t.Parallel()
	t.Run("Ünïcode/deep "+strings.Repeat("long", 30), func(t *testing.T) {
		t.Parallel()
		a, b := testenv.Name(t), testenv.Name(t)
		if a == b || !seckill.ValidSlug(a) || len(a) > 50 {
			t.Errorf("names %q and %q", a, b)
		}
	})
}

func TestRedisOwnKeepsWhatItStored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	srv := testenv.RedisOwn(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr, MaxRetries: 10})
	t.Cleanup(func() { _ = rdb.Close() })
	set := func(v string) {
		t.Helper()
		if err := rdb.Set(ctx, "k", v, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	want := func(v string) {
		t.Helper()
		if got, err := rdb.Get(ctx, "k").Result(); got != v || (err != nil && !errors.Is(err, redis.Nil)) {
			t.Fatalf("k is %q (%v), want %q", got, err, v)
		}
	}
	set("saved")
	srv.Save()
	set("unsaved")
	srv.Kill()
	srv.Start()
	want("saved")
	set("newer")
	srv.Stop()
	srv.Start()
	want("newer")
	srv.Kill()
	srv.Wipe()
	srv.Start()
	want("")
}

func TestPausedServerDoesNotAnswerUntilResumed(t *testing.T) {
	t.Parallel()
	srv := testenv.RedisOwn(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	ping := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		return rdb.Ping(ctx).Err()
	}
	testenv.Eventually(t, 10*time.Second, ping)
	srv.Pause()
	if ping() == nil {
		t.Error("a paused server answered")
	}
	srv.Resume()
	testenv.Eventually(t, 10*time.Second, ping)
}

func TestMySQLDatabasesAreApart(t *testing.T) {
	t.Parallel()
	a, b := openDB(t, testenv.MySQL(t)), openDB(t, testenv.MySQL(t))
	run(t, a, "CREATE TABLE only_here (id INT)")
	if _, err := b.ExecContext(t.Context(), "SELECT id FROM only_here"); err == nil {
		t.Error("a table of one test is seen by another")
	}
}

func TestMySQLOwnKeepsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	srv := testenv.MySQLOwn(t)
	db := openDB(t, srv.DSN)
	run(t, db, "CREATE TABLE n (id INT)")
	run(t, db, "INSERT INTO n (id) VALUES (7)")
	srv.Kill()
	srv.Start()
	wantRow(t, db, 7)
	run(t, openDB(t, srv.AdminDSN), "SET GLOBAL read_only = 1")
	if _, err := db.ExecContext(t.Context(), "INSERT INTO n (id) VALUES (8)"); err == nil {
		t.Error("a read-only server took a row from an ordinary user")
	}
	srv.Stop()
	srv.Start()
	wantRow(t, db, 7)
}

func TestNATSOwnKeepsItsStreams(t *testing.T) {
	t.Parallel()
	srv := testenv.NATSOwn(t)
	conn, err := nats.Connect(srv.URL, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	cfg := jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}}
	if _, err := js.CreateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", []byte("x")); err != nil {
		t.Fatal(err)
	}
	srv.Kill()
	srv.Start()
	testenv.Eventually(t, 10*time.Second, func() error {
		stream, err := js.Stream(t.Context(), "S")
		if err == nil && stream.CachedInfo().State.Msgs != 1 {
			err = fmt.Errorf("%d messages", stream.CachedInfo().State.Msgs)
		}
		return err
	})
	srv.Stop()
	srv.Wipe()
	srv.Start()
	testenv.Eventually(t, 10*time.Second, func() error {
		if _, err := js.Stream(t.Context(), "S"); !errors.Is(err, jetstream.ErrStreamNotFound) {
			return fmt.Errorf("the wiped server answers %w", err)
		}
		return nil
	})
}

// The servers of a killed test binary, and their data, are gone soon after. The
// binary to kill is this one, started again for TestVictim alone.
func TestServersDieWithAKilledTestBinary(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$", "-test.v")
	cmd.Env = append(os.Environ(), "TESTENV_VICTIM=1", "TMPDIR="+temp, "TEST_REDIS_ADDRS=", "TEST_MYSQL_DSN=")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	addrs := firstLine(t, stdout, "serving ")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for addr := range strings.FieldsSeq(addrs) {
		testenv.Eventually(t, 20*time.Second, func() error {
			conn, err := redis.NewDialer(&redis.Options{DialTimeout: time.Second})(t.Context(), "tcp", addr)
			if err == nil {
				_ = conn.Close()
				return errors.New(addr + " still listens")
			}
			return nil
		})
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		left, err := filepath.Glob(filepath.Join(temp, "seckill-test-*"))
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%v were left behind", left)
		}
		return err
	})
}

func TestVictim(t *testing.T) { //nolint:paralleltest // it blocks for ever, in a binary of its own
	if os.Getenv("TESTENV_VICTIM") == "" {
		t.Skip("only for TestServersDieWithAKilledTestBinary")
	}
	shared, own := testenv.Redis(t), testenv.RedisOwn(t).Addr
	url := strings.TrimPrefix(testenv.NATSOwn(t).URL, "nats://")
	fmt.Println("serving", shared, own, url)
	<-t.Context().Done()
}

func firstLine(t *testing.T, r io.Reader, prefix string) string {
	t.Helper()
	all := ""
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		all += string(buf[:n])
		if _, after, ok := strings.Cut(all, prefix); ok {
			if line, _, ok := strings.Cut(after, "\n"); ok {
				return line
			}
		}
		if err != nil {
			t.Fatalf("it said only %q: %v", all, err)
		}
	}
}

func openDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func run(t *testing.T, db *sql.DB, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func wantRow(t *testing.T, db *sql.DB, want int) {
	t.Helper()
	testenv.Eventually(t, 10*time.Second, func() error {
		var got int
		if err := db.QueryRowContext(t.Context(), "SELECT SUM(id) FROM n").Scan(&got); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("the table holds %d, want %d", got, want)
		}
		return nil
	})
}
