package orderhttp_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	orderhttp "seckill/functions/order-http"
	"seckill/shared/mysqlstore"
	"seckill/shared/payment"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// market is a sale in a real MySQL and a real Redis, with two replicas of the
// function.
type market struct {
	t        *testing.T
	mysql    *mysqlstore.Store
	redis    *redisstore.Store
	db       *sql.DB
	sale     seckill.Sale
	replicas [2]http.Handler
	webhooks *payment.Webhooks
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newMarket(t *testing.T, units int64) *market {
	t.Helper()
	ctx := context.Background()
	dsn := testenv.MySQL(t)
	m := &market{t: t}
	var err error
	m.mysql, err = mysqlstore.Open(mysqlstore.Config{DSN: dsn, ConnsMax: 8})
	must(t, err)
	m.redis, err = redisstore.Open(redisstore.Config{Addrs: []string{testenv.Redis(t)}, ConnsMax: 8, Timeout: 5 * time.Second})
	must(t, err)
	m.db, err = sql.Open("mysql", dsn)
	must(t, err)
	t.Cleanup(func() { _, _, _ = m.mysql.Close(), m.redis.Close(), m.db.Close() })
	must(t, m.mysql.Migrate(ctx))

	id := testenv.Name(t)
	_, err = m.mysql.PutItem(ctx, seckill.Item{SKU: id, Name: "Phone"})
	must(t, err)
	m.sale, err = m.mysql.PutSale(ctx, seckill.Sale{
		ID: id, SKU: id, PriceMinor: 9900, Currency: "CNY", Units: units, Limit: 1,
		OpensAt: time.Now().Add(-time.Minute), ClosesAt: time.Now().Add(time.Hour), PayWindow: 15 * time.Minute,
	})
	must(t, err)
	must(t, m.mysql.NextEpoch(ctx, m.sale, 1))
	m.sale.Epoch = 1
	must(t, m.redis.Begin(ctx, m.sale))
	must(t, m.redis.Lift(ctx, m.sale, units, units, 0))

	m.webhooks, err = payment.NewWebhooks(secret)
	must(t, err)
	provider, err := payment.NewSimulated(m.webhooks, "http://pay.test/pay", "")
	must(t, err)
	for i := range m.replicas {
		m.replicas[i] = orderhttp.New(m.mysql, m.redis, bearer{}, provider, time.Now)
	}
	return m
}

// claim has a buyer accepted; the order is not written yet.
func (m *market) claim(buyer string) seckill.AcceptedClaim {
	m.t.Helper()
	id, err := uuid.NewV7()
	must(m.t, err)
	var decision seckill.Decision
	testenv.Eventually(m.t, 10*time.Second, func() error { // a buyer has one try a second
		decisions, err := m.redis.Claim(context.Background(), m.sale.ID,
			[]seckill.ClaimRequest{{ID: id.String(), Buyer: buyer, Quantity: 1}})
		must(m.t, err)
		if decision = decisions[0]; decision.Outcome == seckill.OutcomeRate {
			return errors.New("asked too soon")
		}
		return nil
	})
	if decision.Accepted == nil {
		m.t.Fatalf("claim of %s: %s", buyer, decision.Outcome)
	}
	return *decision.Accepted
}

// place does what order-consumer does with an accepted claim.
func (m *market) place(claims ...seckill.AcceptedClaim) []seckill.Order {
	m.t.Helper()
	placed, err := m.mysql.PlaceOrders(context.Background(), claims)
	must(m.t, err)
	orders := make([]seckill.Order, len(placed))
	settlements := make([]seckill.Settlement, len(placed))
	for i, p := range placed {
		orders[i], settlements[i] = p.Order, p.Settlement(seckill.AcceptedClaim{})
	}
	_, err = m.redis.Settle(context.Background(), m.sale.ID, settlements)
	must(m.t, err)
	return orders
}

func (m *market) order(buyer string) seckill.Order {
	m.t.Helper()
	return m.place(m.claim(buyer))[0]
}

// do sends a buyer's request to one of the replicas.
func (m *market) do(replica int, buyer, method, path string) answer {
	return ask(m.replicas[replica%2], method, path, "", "Authorization", "Bearer "+buyer)
}

// pay sends a signed callback about an order.
func (m *market) pay(message, order string, amount int64, currency string) answer {
	m.t.Helper()
	body := fmt.Sprintf(`{"order":%q,"payment":"p-%s","amount_minor":%d,"currency":%q,"status":"succeeded"}`,
		order, order, amount, currency)
	return notify(m.t, m.replicas[0], m.webhooks, message, body)
}

// makeDue moves the deadline of all unpaid orders.
func (m *market) makeDue(in time.Duration) {
	m.t.Helper()
	_, err := m.db.ExecContext(context.Background(),
		`UPDATE orders SET pay_by = UTC_TIMESTAMP(3) + INTERVAL ? MICROSECOND WHERE status = 'unpaid'`, in.Microseconds())
	must(m.t, err)
}

// expire does what expiry-cron does, until nothing is due; true if anything was.
func (m *market) expire() (any bool) {
	m.t.Helper()
	for {
		rows, n, err := m.mysql.ExpireDue(context.Background(), 100)
		must(m.t, err)
		if n == 0 {
			return any
		}
		any = true
		for _, row := range rows {
			_, err := m.redis.Restock(context.Background(), row.Sale, row.Returns)
			must(m.t, err)
		}
	}
}

func (m *market) wantStatus(id string, want seckill.OrderStatus) {
	m.t.Helper()
	order, _, err := m.mysql.Order(context.Background(), id)
	must(m.t, err)
	if order.Status != want {
		m.t.Errorf("order %s is %s, want %s", id, order.Status, want)
	}
}

// wantStock checks the stock in Redis and in MySQL.
func (m *market) wantStock(want int64) {
	m.t.Helper()
	stock, err := m.mysql.Stock(context.Background(), m.sale.ID)
	must(m.t, err)
	head, err := m.redis.Head(context.Background(), m.sale.ID)
	must(m.t, err)
	if stock.Available != want || head.Stock != want || !head.StockOK {
		m.t.Errorf("stock in MySQL %d, in Redis %d (sound: %t); want %d", stock.Available, head.Stock, head.StockOK, want)
	}
}

// payments counts what is recorded of an order, by result.
func (m *market) wantPayments(order string, want map[string]int) {
	m.t.Helper()
	rows, err := m.db.QueryContext(context.Background(), `SELECT result FROM payments WHERE order_id = ?`, order)
	must(m.t, err)
	defer rows.Close() //nolint:errcheck // read to the end
	got := map[string]int{}
	for rows.Next() {
		var result string
		must(m.t, rows.Scan(&result))
		got[result]++
	}
	must(m.t, rows.Err())
	if fmt.Sprint(got) != fmt.Sprint(want) {
		m.t.Errorf("recorded payments of %s: %v, want %v", order, got, want)
	}
}

func TestManyCancelsGiveBackOneUnit(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	order := m.order("alice")
	m.wantStock(2)
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if a := m.do(i, "alice", http.MethodPost, "/orders/"+order.ID+"/cancel"); a.status != http.StatusOK {
				t.Errorf("cancel: %d %s", a.status, a.body)
			}
		})
	}
	group.Wait()
	m.wantStock(3)
	m.wantStatus(order.ID, seckill.OrderCancelled)
	again := m.order("alice") // the buyer may claim again
	m.do(1, "alice", http.MethodPost, "/orders/"+order.ID+"/cancel")
	m.wantStock(2)
	m.wantStatus(again.ID, seckill.OrderUnpaid)
}

func TestCancelMeetsItsLateClaim(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	claim := m.claim("alice")
	if a := m.do(0, "alice", http.MethodGet, "/orders/"+claim.Claim); a.code() != "order_pending" {
		t.Errorf("before: %d %s", a.status, a.body)
	}
	if a := m.do(0, "bob", http.MethodPost, "/orders/"+claim.Claim+"/cancel"); a.status != http.StatusNotFound {
		t.Errorf("another buyer: %d %s", a.status, a.body)
	}
	for i := range 2 {
		if a := m.do(i, "alice", http.MethodPost, "/orders/"+claim.Claim+"/cancel"); a.status != http.StatusOK || a.fields["status"] != "cancelled" {
			t.Errorf("cancel: %d %s", a.status, a.body)
		}
	}
	m.wantStock(3)
	for range 2 {
		m.place(claim)
	}
	m.wantStatus(claim.Claim, seckill.OrderCancelled)
	m.wantStock(3)
}

func TestCancelRacesTheWriting(t *testing.T) {
	t.Parallel()
	const n = 30
	m := newMarket(t, n)
	var group sync.WaitGroup
	for i := range n {
		buyer := fmt.Sprint("buyer", i)
		claim := m.claim(buyer)
		group.Go(func() { m.place(claim) })
		group.Go(func() {
			if a := m.do(i, buyer, http.MethodPost, "/orders/"+claim.Claim+"/cancel"); a.status != http.StatusOK {
				t.Errorf("cancel: %d %s", a.status, a.body)
			}
		})
	}
	group.Wait()
	m.wantStock(n)
}

func TestOthersOrdersStayAsTheyAre(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	order := m.order("alice")
	for _, call := range []struct{ method, suffix string }{
		{http.MethodGet, ""}, {http.MethodPost, "/cancel"}, {http.MethodPost, "/payment"},
	} {
		for _, buyer := range []string{"bob", "Alice", "alice ", "alice,bob", ""} {
			others := m.do(0, buyer, call.method, "/orders/"+order.ID+call.suffix)
			none := m.do(0, buyer, call.method, "/orders/"+unknownID+call.suffix)
			if others.status != http.StatusNotFound || others.body != none.body {
				t.Errorf("%s by %q: %d %s", call.suffix, buyer, others.status, others.body)
			}
		}
	}
	m.wantStatus(order.ID, seckill.OrderUnpaid)
	m.wantStock(2)
}

func TestPaymentRacesExpiry(t *testing.T) {
	t.Parallel()
	const n = 60
	m := newMarket(t, n)
	claims := make([]seckill.AcceptedClaim, n)
	for i := range claims {
		claims[i] = m.claim(fmt.Sprint("buyer", i))
	}
	orders := m.place(claims...)
	m.makeDue(30 * time.Millisecond)
	results := make([]string, n)
	var group sync.WaitGroup
	for i, order := range orders {
		group.Go(func() {
			a := m.pay(fmt.Sprint("msg_", i), order.ID, 9900, "CNY")
			results[i], _ = a.fields["result"].(string)
		})
	}
	done := make(chan struct{})
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		for {
			m.expire()
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	group.Wait()
	close(done)
	<-swept
	m.makeDue(0)
	m.expire()
	paid := int64(0)
	for i, order := range orders {
		switch results[i] {
		case "applied":
			paid++
			m.wantStatus(order.ID, seckill.OrderPaid)
			m.wantPayments(order.ID, map[string]int{"applied": 1})
		case "refund_due":
			m.wantStatus(order.ID, seckill.OrderExpired)
			m.wantPayments(order.ID, map[string]int{"refund_due": 1})
		default:
			t.Errorf("order %d: result %q", i, results[i])
		}
	}
	m.wantStock(n - paid)
}

func TestDeadlineHoldsWithoutTheSweep(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	order := m.order("alice")
	m.makeDue(0)
	for range 2 {
		if a := m.do(0, "alice", http.MethodGet, "/orders/"+order.ID); a.fields["status"] != "expired" {
			t.Errorf("read: %s", a.body)
		}
		for _, suffix := range []string{"/payment", "/cancel"} {
			if a := m.do(0, "alice", http.MethodPost, "/orders/"+order.ID+suffix); a.status != http.StatusConflict || !strings.Contains(a.body, "expired") {
				t.Errorf("%s: %d %s", suffix, a.status, a.body)
			}
		}
	}
	if a := m.pay("msg_1", order.ID, 9900, "CNY"); a.fields["result"] != "refund_due" {
		t.Errorf("callback: %s", a.body)
	}
	m.expire()
	m.wantStatus(order.ID, seckill.OrderExpired)
	m.wantStock(3)
}

func TestGenuineCallbackCountsOnce(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	order, other := m.order("alice"), m.order("bob")
	for i, want := range []string{"applied", "duplicate", "duplicate"} {
		if a := m.pay("msg_1", order.ID, 9900, "CNY"); a.fields["result"] != want {
			t.Errorf("time %d: %d %s, want %s", i, a.status, a.body, want)
		}
	}
	// The id of a used message for another order of equal amount.
	if a := m.pay("msg_1", other.ID, 9900, "CNY"); a.status == http.StatusOK {
		t.Errorf("reused id: %d %s", a.status, a.body)
	}
	m.wantPayments(order.ID, map[string]int{"applied": 1})
	m.wantStatus(other.ID, seckill.OrderUnpaid)
	a := m.do(0, "alice", http.MethodGet, "/orders/"+order.ID)
	if a.fields["status"] != "paid" || a.fields["paid_at"] == nil {
		t.Errorf("read: %s", a.body)
	}
	m.wantStock(1)
}

func TestWrongAmountsPayNothing(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	order := m.order("alice")
	_, err := m.mysql.PutSale(context.Background(), func() seckill.Sale { s := m.sale; s.PriceMinor = 12900; return s }())
	must(t, err)
	for i, wrong := range []struct {
		amount   int64
		currency string
	}{{1, "CNY"}, {990000, "CNY"}, {9900, "USD"}, {0, "CNY"}, {-9900, "CNY"}, {12900, "CNY"}} {
		a := m.pay(fmt.Sprint("msg_", i), order.ID, wrong.amount, wrong.currency)
		wantAnswer(t, a, http.StatusUnprocessableEntity, "amount_mismatch")
	}
	m.wantStatus(order.ID, seckill.OrderUnpaid)
	m.wantPayments(order.ID, map[string]int{"mismatch": 6})
	if a := m.pay("msg_right", order.ID, 9900, "CNY"); a.fields["result"] != "applied" {
		t.Errorf("the price at the claim: %d %s", a.status, a.body)
	}
}

func TestMoneyForACancelledOrderIsGivenBack(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 1)
	order := m.order("alice")
	m.do(0, "alice", http.MethodPost, "/orders/"+order.ID+"/cancel")
	resold := m.order("bob")
	for i, want := range []string{"refund_due", "duplicate"} {
		if a := m.pay("msg_1", order.ID, 9900, "CNY"); a.status != http.StatusOK || a.fields["result"] != want {
			t.Errorf("time %d: %d %s, want %s", i, a.status, a.body, want)
		}
	}
	m.wantPayments(order.ID, map[string]int{"refund_due": 1})
	m.wantStatus(order.ID, seckill.OrderCancelled)
	m.wantStatus(resold.ID, seckill.OrderUnpaid)
	m.wantStock(0)
}

func TestPaidOrderStaysPaid(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	order := m.order("alice")
	m.pay("msg_1", order.ID, 9900, "CNY")
	failed := fmt.Sprintf(`{"order":%q,"payment":"p-2","amount_minor":9900,"currency":"CNY","status":"failed"}`, order.ID)
	for range 2 {
		if a := notify(t, m.replicas[1], m.webhooks, "msg_2", failed); a.status != http.StatusOK {
			t.Errorf("failed payment: %d %s", a.status, a.body)
		}
		wantAnswer(t, m.do(0, "alice", http.MethodPost, "/orders/"+order.ID+"/payment"), http.StatusConflict, "conflict")
		m.makeDue(0)
		m.expire()
	}
	m.wantStatus(order.ID, seckill.OrderPaid)
	m.wantStock(2)
}

func TestPaymentBeforeTheOrderIsWrittenComesAgain(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	claim := m.claim("alice")
	for range 3 {
		a := m.pay("msg_1", claim.Claim, 9900, "CNY")
		wantAnswer(t, a, http.StatusServiceUnavailable, "order_pending")
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	m.place(claim)
	if a := m.pay("msg_1", claim.Claim, 9900, "CNY"); a.fields["result"] != "applied" {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
	m.wantStatus(claim.Claim, seckill.OrderPaid)
}
