package orderhttp_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/shared/audit"
	"seckill/shared/payment"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// lawsHold audits the sale at rest.
func (m *market) lawsHold() audit.Report {
	m.t.Helper()
	report, err := audit.Sale(context.Background(), m.mysql, m.redis, m.sale.ID)
	must(m.t, err)
	if !report.Laws.Hold() {
		m.t.Errorf("a law does not hold: %+v", report)
	}
	return report
}

// callback sends a callback of an order's payment, spoiled as a test wishes.
func (m *market) callback(order string, spoil func(*callback)) answer {
	m.t.Helper()
	c := &callback{
		webhooks: m.webhooks, id: "msg_" + order, at: time.Now(), order: order, amount: 9900, currency: "CNY",
		alter: func(body string) string { return body },
	}
	if spoil != nil {
		spoil(c)
	}
	body := fmt.Sprintf(`{"order":%q,"payment":"p-%s","amount_minor":%d,"currency":%q,"status":"succeeded"}`,
		c.order, order, c.amount, c.currency)
	header, err := c.webhooks.Sign(c.id, c.at, []byte(body))
	must(m.t, err)
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/payments/callback", strings.NewReader(c.alter(body)))
	r.Header = header
	return send(m.replicas[0], r)
}

// callback is what a provider would send.
type callback struct {
	webhooks *payment.Webhooks
	id       string
	at       time.Time
	order    string
	amount   int64
	currency string
	alter    func(body string) string // after it was signed
}

// TestCallbacks sends every kind of callback for an order of its own, twice
// one after the other and then a good one: only what is genuine and right pays.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 20)
	forger, err := payment.NewWebhooks(strings.ToUpper(secret))
	must(t, err)
	for name, test := range map[string]struct {
		spoil  func(*callback)
		status int    // of both
		first  string // results
		second string
		paid   bool
	}{
		"good":            {nil, 200, "applied", "duplicate", true},
		"forged":          {func(c *callback) { c.webhooks = forger }, 401, "", "", false},
		"altered":         {func(c *callback) { c.alter = func(b string) string { return b + " " } }, 401, "", "", false},
		"old":             {func(c *callback) { c.at = c.at.Add(-6 * time.Minute) }, 401, "", "", false},
		"of the future":   {func(c *callback) { c.at = c.at.Add(6 * time.Minute) }, 401, "", "", false},
		"too little":      {func(c *callback) { c.amount = 1 }, 422, "", "duplicate", false},
		"too much":        {func(c *callback) { c.amount = 990_000 }, 422, "", "duplicate", false},
		"negative":        {func(c *callback) { c.amount = -9900 }, 422, "", "duplicate", false},
		"other currency":  {func(c *callback) { c.currency = "USD" }, 422, "", "duplicate", false},
		"unknown order":   {func(c *callback) { c.order = unknownID }, 503, "", "", false},
		"no order at all": {func(c *callback) { c.order = "1" }, 400, "", "", false},
	} {
		order := m.order("buyer-" + strings.ReplaceAll(name, " ", "-"))
		for i, want := range []string{test.first, test.second} {
			a := m.callback(order.ID, test.spoil)
			result, _ := a.fields["result"].(string)
			status := test.status
			if want != "" {
				status = http.StatusOK
			}
			if a.status != status || result != want {
				t.Errorf("%s, time %d: %d %s; want %d %q", name, i, a.status, a.body, status, want)
			}
		}
		want := seckill.OrderUnpaid
		if test.paid {
			want = seckill.OrderPaid
		}
		m.wantStatus(order.ID, want)
		m.callback(order.ID, func(c *callback) { c.id = "good_" + order.ID })
		m.wantStatus(order.ID, seckill.OrderPaid)
	}
	m.lawsHold()
}

// The same callback twice at once, and before its order exists.
func TestCallbackTwiceAtOnceBeforeItsOrder(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 30)
	for i := range 20 {
		claim := m.claim(fmt.Sprint("buyer", i))
		var group sync.WaitGroup
		gate, applied := make(chan struct{}), make(chan string, 4)
		for range 4 {
			group.Go(func() {
				<-gate
				testenv.Eventually(t, 20*time.Second, func() error { // a provider repeats on 503
					a := m.callback(claim.Claim, nil)
					if a.status != http.StatusOK {
						return fmt.Errorf("%d %s", a.status, a.body)
					}
					applied <- fmt.Sprint(a.fields["result"])
					return nil
				})
			})
		}
		group.Go(func() { <-gate; m.place(claim) })
		close(gate)
		group.Wait()
		close(applied)
		n := map[string]int{}
		for result := range applied {
			n[result]++
		}
		if n["applied"] != 1 || n["duplicate"] != 3 {
			t.Errorf("results %v", n)
		}
		m.wantPayments(claim.Claim, map[string]int{"applied": 1})
	}
	m.lawsHold()
}

// refund does what expiry-cron does.
func (m *market) refund() (n int) {
	m.t.Helper()
	due, err := m.mysql.RefundsDue(context.Background(), 500)
	must(m.t, err)
	for _, r := range due {
		must(m.t, m.mysql.RefundDone(context.Background(), r.ID))
	}
	return len(due)
}

// finish does what the sweep does with the returns that crashes left.
func (m *market) finish() {
	m.t.Helper()
	rows, err := m.mysql.Outbox(context.Background(), 0, 1000, 0)
	must(m.t, err)
	for _, row := range rows {
		_, err := m.redis.Restock(context.Background(), row.Sale, row.Returns)
		must(m.t, err)
		must(m.t, m.mysql.OutboxDone(context.Background(), []int64{row.ID}))
	}
}

// TestPayCancelExpireStartGate lets the payment, the cancel and the expiry of
// one order start together, 500 times: one of them wins, the others say so,
// and the order, the money and the units agree with the winner.
func TestPayCancelExpireStartGate(t *testing.T) {
	t.Parallel()
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	const atOnce = 25
	m := newMarket(t, int64(rounds))
	winners := map[seckill.OrderStatus]int{}
	for round := 0; round < rounds; round += atOnce {
		claims := make([]seckill.AcceptedClaim, atOnce)
		for i := range claims {
			claims[i] = m.claim(fmt.Sprintf("b-%d-%d", round, i))
		}
		orders := m.place(claims...)
		m.makeDue(25 * time.Millisecond)
		gate := make(chan struct{})
		var group sync.WaitGroup
		paid, cancelled := make([]string, atOnce), make([]answer, atOnce)
		for i, o := range orders {
			group.Go(func() {
				<-gate
				paid[i], _ = m.callback(o.ID, nil).fields["result"].(string)
			})
			group.Go(func() {
				<-gate
				cancelled[i] = m.do(i, o.Buyer, http.MethodPost, "/orders/"+o.ID+"/cancel")
			})
		}
		for range 2 {
			group.Go(func() { <-gate; m.expire() })
		}
		close(gate)
		group.Wait()
		m.makeDue(0)
		m.expire()
		m.finish()
		for i, o := range orders {
			after, _, err := m.mysql.Order(context.Background(), o.ID)
			must(t, err)
			winners[after.Status]++
			said := fmt.Sprint(paid[i], " ", cancelled[i].status)
			if want := map[seckill.OrderStatus]string{
				seckill.OrderPaid:      "applied 409", // cancelled past the deadline, paid just before
				seckill.OrderRefunding: "applied 200",
				seckill.OrderCancelled: "refund_due 200",
				seckill.OrderExpired:   "refund_due 409",
			}[after.Status]; said != want {
				t.Errorf("order is %s, but payment and cancel were told %q", after.Status, said)
			}
		}
		m.wantStock(int64(rounds) - m.lawsHold().Orders[seckill.OrderPaid])
		m.refund()
	}
	report, kept := m.lawsHold(), int64(9900*winners[seckill.OrderPaid])
	want := seckill.Money{Currency: "CNY", Received: int64(rounds) * 9900, Refunded: int64(rounds)*9900 - kept, Kept: kept}
	if len(report.Money) != 1 || report.Money[0] != want {
		t.Errorf("money %+v, want %+v", report.Money, want)
	}
	t.Logf("winners %v", winners)
}

// stream reads the events of an order until ctx ends.
func (m *market) stream(ctx context.Context, buyer, order string) <-chan string {
	m.t.Helper()
	server := httptest.NewServer(m.replicas[0])
	m.t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/orders/"+order, nil)
	must(m.t, err)
	r.Header.Set("Authorization", "Bearer "+buyer)
	r.Header.Set("Accept", "text/event-stream")
	response, err := server.Client().Do(r)
	must(m.t, err)
	m.t.Cleanup(func() { _ = response.Body.Close() })
	documents := make(chan string, 16)
	go func() {
		defer close(documents)
		buffer, chunk := []byte{}, make([]byte, 4096)
		for {
			n, err := response.Body.Read(chunk)
			buffer = append(buffer, chunk[:n]...)
			for {
				event, rest, found := bytes.Cut(buffer, []byte("\n\n"))
				if !found {
					break
				}
				documents <- string(event)
				buffer = rest
			}
			if err != nil {
				return
			}
		}
	}()
	return documents
}

func TestOrderIsWatched(t *testing.T) {
	t.Parallel()
	m := newMarket(t, 3)
	order := m.order("alice")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	documents := m.stream(ctx, "alice", order.ID)
	next := func(what ...string) {
		t.Helper()
		select {
		case document := <-documents:
			for _, w := range what {
				if !strings.Contains(document, w) {
					t.Errorf("event %q, want %q in it", document, w)
				}
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no event %q", what)
		}
	}
	next("event: order", `"status":"unpaid"`)
	m.callback(order.ID, nil)
	next(`"status":"paid"`)
	m.do(1, "alice", http.MethodPost, "/orders/"+order.ID+"/cancel")
	next(`"status":"refunding"`, `"refund":{"amount_minor":9900,"status":"due"}`)
	m.refund()
	next(`"status":"refunded"`, `"refund":{"amount_minor":9900,"status":"done"}`)

	late := m.order("bob")
	documents = m.stream(ctx, "bob", late.ID)
	next(`"status":"unpaid"`)
	m.makeDue(0)
	next(`"status":"expired"`) // nobody swept
	m.callback(late.ID, nil)
	next(`"status":"expired"`, `"refund":{"amount_minor":9900,"status":"due"}`)
	m.refund()
	next(`"status":"expired"`, `"refund":{"amount_minor":9900,"status":"done"}`)
	m.lawsHold()
}
