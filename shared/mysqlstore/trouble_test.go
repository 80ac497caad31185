package mysqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// A server that fails a statement is our own trouble: what another try may
// mend is mended within the call, everything else is unknown, nothing is half
// written, and the next call finds it well.
func TestServerErrorsAreOurTrouble(t *testing.T) {
	t.Parallel()
	e := newEnv(t, engines[0], testenv.MySQLOwn(t).AdminDSN)
	// The counter is not part of the transaction that its trigger fails.
	e.exec(`CREATE TABLE failures (code INT, left_over INT) ENGINE=MyISAM`)
	e.exec(`INSERT INTO failures VALUES (0, 0)`)
	for _, table := range []string{"orders", "outbox"} {
		e.exec(`CREATE TRIGGER fail_` + table + ` BEFORE INSERT ON ` + table + ` FOR EACH ROW BEGIN
			DECLARE n INT;
			SELECT code INTO n FROM failures WHERE left_over > 0;
			IF n IS NOT NULL THEN
				UPDATE failures SET left_over = left_over - 1;
				SIGNAL SQLSTATE 'HY000' SET MYSQL_ERRNO = n, MESSAGE_TEXT = 'trouble';
			END IF;
		END`)
	}
	sale := e.sale(1000, 1)
	available := int64(1000)
	for code, mends := range map[int]bool{
		1020: true, 1205: true, 1213: true, // conflicts
		1290: true, 1792: true, 1836: true, // another server is the writer now
		1040: false, 1053: false, 1114: false, 1317: false, 3169: false,
	} {
		e.exec(`UPDATE failures SET code = ?, left_over = 1`, code)
		c := claimOf(sale, fmt.Sprint("buyer-", code), 1)
		for try, wantOK := range []bool{mends, true} {
			placed, err := e.PlaceOrders(t.Context(), []seckill.AcceptedClaim{c})
			if wantOK && (err != nil || len(placed) != 1 || placed[0].Order.Status != seckill.OrderUnpaid) {
				t.Errorf("%d, try %d: placed %+v, %v", code, try, placed, err)
			}
			if !wantOK && !errors.Is(err, seckill.ErrUnavailable) {
				t.Errorf("%d, try %d: %+v, %v", code, try, placed, err)
			}
			if !wantOK {
				e.lawsHold(sale, available)
			}
		}
		available--
		e.lawsHold(sale, available)
		e.exec(`UPDATE failures SET left_over = 1`)
		_, row, err := e.Cancel(t.Context(), c.Claim, c.Buyer)
		if !mends && !errors.Is(err, seckill.ErrUnavailable) || mends && (err != nil || row.ID == 0) {
			t.Errorf("%d: cancelled %+v, %v", code, row, err)
		}
		if _, _, err := e.Cancel(t.Context(), c.Claim, c.Buyer); err != nil {
			t.Errorf("%d: cancelled again: %v", code, err)
		}
		available++
		e.lawsHold(sale, available)
	}
	if n := e.returned(); n != 11 {
		t.Errorf("%d claims return their units, want 11", n)
	}
}

// Connections that the server closed while nothing was to do are replaced: no
// caller meets one.
func TestIdleConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	server := testenv.MySQLOwn(t)
	admin, err := sql.Open("mysql", server.AdminDSN)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close() //nolint:errcheck // nothing to lose
	if _, err := admin.ExecContext(t.Context(), `SET GLOBAL wait_timeout = 1`); err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, engine{conns: 4, racers: 4}, server.DSN)
	sale := e.sale(20, 1)
	claims := claimsOf(sale, 8)
	together(4, func(i int) { e.place(claims[i]) })
	idle := func() {
		t.Helper()
		testenv.Eventually(t, 30*time.Second, func() error {
			var n int
			err := admin.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'seckill'`).Scan(&n)
			if err == nil && n > 0 {
				err = fmt.Errorf("%d connections are still open", n)
			}
			return err
		})
	}
	for name, call := range map[string]func() error{
		"place":  func() error { _, err := e.PlaceOrders(t.Context(), claims[4:]); return err },
		"cancel": func() error { _, _, err := e.Cancel(t.Context(), claims[0].Claim, claims[0].Buyer); return err },
		"pay":    func() error { _, _, err := e.Pay(t.Context(), paymentOf(claims[1], "r")); return err },
		"expire": func() error { _, _, err := e.ExpireDue(t.Context(), 10); return err },
		"read":   func() error { _, _, err := e.Order(t.Context(), claims[1].Claim); return err },
	} {
		idle()
		if err := call(); err != nil {
			t.Errorf("%s after the server closed the connections: %v", name, err)
		}
	}
	e.lawsHold(sale, 13)
}

// Others have taken every connection of the server (1040): that is unknown,
// never an answer, and over when they let go.
func TestServerIsFullOfOthers(t *testing.T) {
	t.Parallel()
	server := testenv.MySQLOwn(t)
	e := newEnv(t, engine{conns: 4, racers: 4}, server.DSN)
	sale := e.sale(20, 1)
	claims := claimsOf(sale, 2)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	adminOf(t, server.AdminDSN)(`SET GLOBAL max_connections = 10`)
	others, err := sql.Open("mysql", server.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close() //nolint:errcheck // nothing to lose
	var taken []*sql.Conn
	for {
		conn, err := others.Conn(t.Context())
		if isCode(err, 1040) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, conn)
	}
	late := openStore(t, Config{DSN: server.DSN, ConnsMax: 4})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if placed, err := late.PlaceOrders(ctx, claims); !errors.Is(err, seckill.ErrUnavailable) || !isCode(err, 1040) {
		t.Errorf("placed %+v, %v", placed, err)
	}
	for _, conn := range taken {
		if err := errors.Join(conn.Raw(func(any) error { return driver.ErrBadConn }), conn.Close()); !errors.Is(err, driver.ErrBadConn) {
			t.Fatal(err)
		}
	}
	testenv.Eventually(t, 20*time.Second, func() error {
		_, err := late.PlaceOrders(t.Context(), claims)
		return err
	})
	o, _, err := late.Order(t.Context(), claims[1].Claim)
	if err != nil || o.Status != seckill.OrderUnpaid {
		t.Errorf("order %+v, %v", o, err)
	}
}

// A backlog with more values than one prepared statement can have (65,535) is
// written, and expired, in chunks.
func TestBacklogOverOneStatement(t *testing.T) {
	t.Parallel()
	cfg, err := fixDSN(testenv.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.InterpolateParams = false // the client's own way has no such limit
	connector, err := newConnector(cfg, lockWaitMax)
	if err != nil {
		t.Fatal(err)
	}
	prepared := &Store{db: sql.OpenDB(connector), connector: connector}
	defer prepared.Close() //nolint:errcheck // nothing to lose
	if err := prepared.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := env{T: t, Store: prepared, engine: engines[0]}
	const n = 6000 // 12 values each
	sale, other := e.sale(n, 1), e.sale(10, 1)
	for _, p := range e.place(claimsOf(sale, n)...) {
		if outcome(p) != "unpaid" {
			t.Fatalf("placed %+v", p)
		}
	}
	kept := claimsOf(other, 5)
	e.place(kept[:1]...)
	e.lawsHold(sale, 0)
	e.makeDue(sale)
	// Another sale goes on while the backlog expires: nobody there is met.
	together(5, func(i int) {
		if i > 0 {
			if _, err := e.PlaceOrders(t.Context(), kept[i:i+1]); err != nil {
				t.Error(err)
			}
			return
		}
		for {
			if _, count, err := e.ExpireDue(t.Context(), 1_000_000); err != nil || count == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	})
	e.lawsHold(sale, n)
	e.lawsHold(other, 5)
	back, after := map[string]bool{}, int64(0)
	for { // one call spells out only so many orders
		rows, err := e.Outbox(t.Context(), after, 100, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			after = row.ID
			for _, r := range row.Returns {
				if back[r.Claim] {
					t.Errorf("claim %s returns its units twice", r.Claim)
				}
				back[r.Claim] = true
			}
		}
	}
	if len(back) != n {
		t.Errorf("%d claims return their units", len(back))
	}
}

// Money is whole minor units: the exact amount pays, one more or less does not.
func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	onEach(t, func(e env) {
		for i, price := range []int64{435, 7, 3333, 10_05, 9_999_999_999} {
			sale := e.sale(100, 3)
			sale.PriceMinor = price
			sale, err := e.PutSale(e.Context(), sale)
			if err != nil {
				e.Fatal(err)
			}
			for units := int64(1); units <= 3; units++ {
				c := claimOf(sale, fmt.Sprint("b", units), units)
				e.place(c)
				if o := e.status(c.Claim, seckill.OrderUnpaid); o.AmountMinor != price*units {
					e.Errorf("%d units of %d cost %d", units, price, o.AmountMinor)
				}
				for _, off := range []int64{1, -1} {
					p := paymentOf(c, fmt.Sprint("off", i, units, off))
					p.AmountMinor += off
					e.pays(p, seckill.PayMismatch, seckill.OrderUnpaid)
				}
				e.pays(paymentOf(c, fmt.Sprint("right", i, units)), seckill.PayApplied, seckill.OrderPaid)
			}
		}
	})
}
