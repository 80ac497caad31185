package proxy_test

import (
	"context"
	"database/sql"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"seckill/scripts/faults/proxy"
	"seckill/shared/testenv"
)

// watcher notes steps and stops at one.
type watcher struct {
	mu   sync.Mutex
	seen []string
	stop string
}

func (w *watcher) watch(when proxy.When, step proxy.Step, _ []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := string(when) + " " + step.Name
	w.seen = append(w.seen, at)
	return at != w.stop
}

func (w *watcher) stopAt(at string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop = at
}

func (w *watcher) saw(at string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains("\n"+strings.Join(w.seen, "\n")+"\n", "\n"+at+"\n")
}

func listen(t *testing.T, store string, protocol proxy.Protocol) (*proxy.Proxy, *watcher) {
	t.Helper()
	w := &watcher{}
	p, err := proxy.Listen(proxy.Config{Store: store, Protocol: protocol, Watch: w.watch})
	must(t, err)
	t.Cleanup(p.Close)
	return p, w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestRedisStepsAreStoppedBeforeAndAfter(t *testing.T) {
	t.Parallel()
	addr := testenv.RedisOwn(t).Addr
	p, w := listen(t, addr, proxy.Redis)
	direct := redis.NewClient(&redis.Options{Addr: addr})
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close(); _ = direct.Close() })
	ctx := t.Context()
	script := redis.NewScript("-- sale.lua is read\n-- restock.lua gives back\nreturn redis.call('INCR', KEYS[1])")
	run := func() error { return script.Run(ctx, client, []string{"n"}).Err() }
	must(t, run())
	if !w.saw("before restock") || !w.saw("after restock") {
		t.Fatalf("saw %v", w.seen)
	}
	for stop, want := range map[string]int64{"before restock": 1, "after restock": 2} {
		must(t, direct.Set(ctx, "n", 1, 0).Err())
		w.stopAt(stop)
		if run() == nil {
			t.Errorf("%s: it was answered", stop)
		}
		if n, err := direct.Get(ctx, "n").Int64(); err != nil || n != want {
			t.Errorf("%s: n is %d, %v", stop, n, err)
		}
	}
}

func TestMySQLStepsAreStoppedBeforeAndAfter(t *testing.T) {
	t.Parallel()
	cfg, err := mysql.ParseDSN(testenv.MySQL(t))
	must(t, err)
	cfg.Logger = &mysql.NopLogger{}
	direct := open(t, cfg.FormatDSN())
	p, w := listen(t, cfg.Addr, proxy.MySQL)
	through := cfg.Clone()
	through.Addr = p.Addr()
	client := open(t, through.FormatDSN())
	exec(t, direct, "CREATE TABLE orders (id INT)")
	for stop, want := range map[string]int{"": 1, "before COMMIT INSERT orders": 0, "after COMMIT INSERT orders": 1} {
		exec(t, direct, "DELETE FROM orders")
		w.stopAt(stop)
		tx, err := client.BeginTx(t.Context(), nil)
		must(t, err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO orders (id) VALUES (1)")
		must(t, err)
		if err := tx.Commit(); (err == nil) != (stop == "") {
			t.Errorf("%q: commit: %v", stop, err)
		}
		testenv.Eventually(t, 5*time.Second, func() error { return wantRows(t.Context(), direct, want) })
	}
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	must(t, err)
}

func wantRows(ctx context.Context, db *sql.DB, want int) error {
	var n int
	err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&n)
	if err == nil && n != want {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func TestNATSStepsAreStoppedBeforeAndAfter(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	p, w := listen(t, strings.TrimPrefix(url, "nats://"), proxy.NATS)
	direct, client := jetstreamAt(t, url), jetstreamAt(t, "nats://"+p.Addr())
	ctx := t.Context()
	stream, err := direct.CreateStream(ctx, jetstream.StreamConfig{Name: "CLAIMS", Subjects: []string{"seckill.claims.>"}})
	must(t, err)
	_, err = direct.CreateConsumer(ctx, "CLAIMS", jetstream.ConsumerConfig{Durable: "c"})
	must(t, err)
	stored := uint64(0)
	for _, stop := range []string{"", "before publish CLAIMS", "after publish CLAIMS"} {
		w.stopAt(stop)
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := client.Publish(short, "seckill.claims.s", []byte(`{"error":{}}`))
		cancel()
		if (err == nil) != (stop == "") {
			t.Errorf("%q: publish: %v", stop, err)
		}
		if stop != "before publish CLAIMS" {
			stored++
		}
		w.stopAt("")
		info, err := stream.Info(ctx)
		must(t, err)
		if info.State.Msgs != stored {
			t.Errorf("%q: %d are stored, want %d", stop, info.State.Msgs, stored)
		}
	}
	pulled, err := client.Consumer(ctx, "CLAIMS", "c")
	must(t, err)
	batch, err := pulled.Fetch(1, jetstream.FetchMaxWait(5*time.Second))
	must(t, err)
	for msg := range batch.Messages() {
		must(t, msg.Ack())
	}
	testenv.Eventually(t, 5*time.Second, func() error {
		if !w.saw("before pull") || !w.saw("after pull") || !w.saw("before ack") || !w.saw("after ack") {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
}

func jetstreamAt(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	must(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(t, err)
	return js
}

// echo answers each PING line of Redis' protocol with 100 bytes, and counts.
func echo(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close() //nolint:errcheck // ends with its peer
				buf := make([]byte, 1024)
				for {
					if _, err := c.Read(buf); err != nil {
						return
					}
					if _, err := c.Write([]byte(strings.Repeat("x", 100))); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

const ping = "*1\r\n$4\r\nPING\r\n"

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// got sends a request and returns how many bytes came back until the
// connection ended or nothing came for a while.
func got(t *testing.T, c net.Conn) int {
	t.Helper()
	_, err := c.Write([]byte(ping))
	must(t, err)
	must(t, c.SetReadDeadline(time.Now().Add(300*time.Millisecond)))
	n, _ := io.ReadFull(c, make([]byte, 100))
	return n
}

func TestTroubles(t *testing.T) {
	t.Parallel()
	p, _ := listen(t, echo(t), proxy.Redis)
	c := dial(t, p)
	if n := got(t, c); n != 100 {
		t.Fatalf("%d bytes without trouble", n)
	}
	p.Set(proxy.Trouble{CutAfter: 37})
	if n := got(t, c); n != 37 {
		t.Errorf("cut: %d bytes", n)
	}
	p.Heal()
	for name, trouble := range map[string]proxy.Trouble{
		"mute": {DropReplies: true}, "stalls requests": {StallRequests: true}, "stalls replies": {StallReplies: true},
	} {
		c = dial(t, p)
		p.Set(trouble)
		if n := got(t, c); n != 0 {
			t.Errorf("%s: %d bytes", name, n)
		}
		p.Heal()
		must(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
		n, _ := io.ReadFull(c, make([]byte, 100))
		if want := map[bool]int{true: 0, false: 100}[trouble.DropReplies]; n != want {
			t.Errorf("%s: %d bytes once it is over, want %d", name, n, want)
		}
	}
	c = dial(t, p)
	if n := got(t, c); n != 100 { // so that it is taken for sure
		t.Errorf("after all troubles: %d bytes", n)
	}
	p.Set(proxy.Trouble{Refuse: true})
	if taken, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Addr()); err == nil { // the kernel may have been quicker
		must(t, taken.SetReadDeadline(time.Now().Add(5*time.Second)))
		if n, err := taken.Read(make([]byte, 1)); err == nil {
			t.Errorf("refuses: %d bytes", n)
		}
		_ = taken.Close()
	}
	if n := got(t, c); n != 100 {
		t.Errorf("refuses new ones only: %d bytes", n)
	}
	p.Heal()
	p.Reset()
	testenv.Eventually(t, 5*time.Second, func() error {
		if n := got(t, dial(t, p)); n != 100 {
			return io.ErrUnexpectedEOF
		}
		return nil
	})
}
