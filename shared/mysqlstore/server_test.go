package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// While the server is read-only nothing is refused as if it were an answer,
// and nothing is left over; when it can be written to again, so can we.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	server := testenv.MySQLOwn(t)
	e := newEnv(t, engines[0], server.DSN)
	admin := adminOf(t, server.AdminDSN)
	sale := e.sale(10, 1)
	c := claimOf(sale, "a", 1)
	e.place(c)
	admin(`SET GLOBAL read_only = 1`)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	for name, call := range map[string]func() error{
		"ping":   func() error { return e.Ping(ctx) },
		"cancel": func() error { _, _, err := e.Cancel(ctx, c.Claim, "a"); return err },
		"pay":    func() error { _, _, err := e.Pay(ctx, paymentOf(c, "r")); return err },
		"place": func() error {
			_, err := e.PlaceOrders(ctx, []seckill.AcceptedClaim{claimOf(sale, "b", 1)})
			return err
		},
	} {
		if err := call(); !errors.Is(err, seckill.ErrUnavailable) {
			t.Errorf("%s while read-only: %v", name, err)
		}
	}
	e.status(c.Claim, seckill.OrderUnpaid)
	admin(`SET GLOBAL read_only = 0`)
	if err := e.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	e.place(claimOf(sale, "b", 1))
	if _, _, err := e.Cancel(t.Context(), c.Claim, "a"); err != nil {
		t.Error(err)
	}
	e.lawsHold(sale, 9)
}

// Connections that died while nobody looked are replaced without an error.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server := testenv.MySQLOwn(t)
	e := newEnv(t, engines[0], server.DSN)
	sale := e.sale(10, 1)
	e.place(claimsOf(sale, 3)...)
	server.Kill()
	if err := e.Ping(t.Context()); !errors.Is(err, seckill.ErrUnavailable) {
		t.Errorf("ping of a dead server: %v", err)
	}
	server.Start()
	e.place(claimOf(sale, "x", 1))
	e.lawsHold(sale, 6)
}

// A tight server: small packets, no prepared statements to spare, few
// connections.
func TestTightServer(t *testing.T) {
	t.Parallel()
	server := testenv.MySQLOwn(t)
	admin := adminOf(t, server.AdminDSN)
	admin(`SET GLOBAL max_allowed_packet = 1048576`)
	admin(`SET GLOBAL max_prepared_stmt_count = 0`)
	e := newEnv(t, engines[0], server.DSN)
	longest := strings.Repeat("z", 60)
	if _, err := e.PutItem(t.Context(), seckill.Item{SKU: longest, Name: "x", Description: strings.Repeat("'", 60_000)}); err != nil {
		t.Fatal(err)
	}
	at := time.Now()
	sale, err := e.PutSale(t.Context(), seckill.Sale{
		ID: longest, SKU: longest, PriceMinor: seckill.PriceMinorMax, Currency: "CNY", Units: 10_000, Limit: 2,
		OpensAt: at, ClosesAt: at.Add(time.Hour), PayWindow: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	claims := make([]seckill.AcceptedClaim, 2*chunkMax+1)
	for i := range claims {
		claims[i] = claimOf(sale, fmt.Sprintf("%s%04d", longest, i), 2)
	}
	for _, p := range e.place(claims...) {
		if outcome(p) != "unpaid" {
			t.Fatalf("placed %+v", p)
		}
	}
	e.lawsHold(sale, 10_000-2*int64(len(claims)))
	e.makeDue(sale)
	n := 1
	for n > 0 {
		if _, n, err = e.ExpireDue(t.Context(), 100_000); err != nil {
			t.Fatal(err)
		}
	}
	e.lawsHold(sale, 10_000)
	if back := e.returned(); back != int64(len(claims)) {
		t.Errorf("%d claims return their units", back)
	}
}

// When no further connection can be had, that is our trouble.
func TestTooManyConnections(t *testing.T) {
	t.Parallel()
	server := testenv.MySQLOwn(t)
	admin := adminOf(t, server.AdminDSN)
	e := newEnv(t, engines[0], server.DSN)
	sale := e.sale(10, 1)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	admin(`ALTER USER 'seckill'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 1`)
	first := openStore(t, Config{DSN: server.DSN, ConnsMax: 1})
	if _, err := first.Stock(t.Context(), sale.ID); err != nil {
		t.Fatal(err)
	}
	second := openStore(t, Config{DSN: server.DSN, ConnsMax: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := second.PlaceOrders(ctx, claimsOf(sale, 1)); !errors.Is(err, seckill.ErrUnavailable) {
		t.Errorf("no connection left: %v", err)
	}
	admin(`ALTER USER 'seckill'@'127.0.0.1' WITH MAX_USER_CONNECTIONS 0`)
	if placed, err := second.PlaceOrders(t.Context(), claimsOf(sale, 1)); err != nil || !placed[0].New {
		t.Errorf("placed %+v, %v", placed, err)
	}
}

// adminOf returns a function that runs a statement as an administrator.
func adminOf(t *testing.T, dsn string) func(string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return func(statement string) {
		t.Helper()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}
