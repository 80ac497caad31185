package orderhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	orderhttp "seckill/functions/order-http"
	"seckill/shared/payment"
	"seckill/shared/problem"
	"seckill/shared/seckill"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	os.Exit(m.Run())
}

const (
	orderID   = "0193a4c2-7b1e-7c3d-8e4f-5a6b7c8d9e0f"
	unknownID = "0193a4c2-7b1e-7c3d-8e4f-5a6b7c8d9e10"
	secret    = "a-secret-of-more-than-24-bytes"
)

var (
	now     = time.Date(2026, 6, 18, 12, 0, 0, 0, time.UTC)
	errDown = errors.New("connection refused")
)

// orders is a MySQL that answers what a test sets.
type orders struct {
	mu       sync.Mutex
	order    seckill.Order // the only one, none if its ID is empty
	row      seckill.OutboxRow
	result   seckill.PayResult
	err      error
	sales    int // how often the sales were read
	returned []int64
	paid     []seckill.Payment
	refunds  []seckill.Refund
	looks    int                     // how often states were read
	written  []seckill.AcceptedClaim // cancelled before they were written
}

func (o *orders) Order(_ context.Context, id string) (seckill.Order, time.Time, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil && o.order.ID != id {
		return seckill.Order{}, now, seckill.ErrNotFound
	}
	return o.order, now, o.err
}

func (o *orders) Cancel(_ context.Context, id, buyer string) (seckill.Order, seckill.OutboxRow, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err != nil:
		return seckill.Order{}, seckill.OutboxRow{}, o.err
	case o.order.ID != id || o.order.Buyer != buyer:
		return seckill.Order{}, seckill.OutboxRow{}, seckill.ErrNotFound
	}
	switch o.order.Status {
	case seckill.OrderUnpaid:
		o.order.Status = seckill.OrderCancelled
	case seckill.OrderPaid:
		o.order.Status = seckill.OrderRefunding
		o.refunds = append(o.refunds, seckill.Refund{ID: 1, Order: id, AmountMinor: o.order.AmountMinor, Status: seckill.RefundDue})
	case seckill.OrderCancelled, seckill.OrderRefunding, seckill.OrderRefunded:
		return o.order, seckill.OutboxRow{}, nil
	case seckill.OrderExpired, seckill.OrderRejected:
		return o.order, seckill.OutboxRow{}, seckill.ErrConflict
	}
	return o.order, o.row, nil
}

func (o *orders) RefundsOf(context.Context, string) ([]seckill.Refund, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.refunds), o.err
}

func (o *orders) OrderStates(_ context.Context, ids []string) (map[string]seckill.OrderState, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks++
	state := seckill.OrderState{Status: o.order.Status}
	for _, r := range o.refunds {
		if r.Status == seckill.RefundDue {
			state.RefundsDue++
		} else {
			state.RefundsDone++
		}
	}
	states := map[string]seckill.OrderState{}
	if slices.Contains(ids, o.order.ID) {
		states[o.order.ID] = state
	}
	return states, o.err
}

func (o *orders) CancelUnwritten(_ context.Context, c seckill.AcceptedClaim) (seckill.Order, seckill.OutboxRow, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written = append(o.written, c)
	o.order = seckill.Order{ID: c.Claim, Buyer: c.Buyer, Status: seckill.OrderCancelled}
	return o.order, o.row, o.err
}

func (o *orders) Pay(_ context.Context, p seckill.Payment) (seckill.Order, seckill.PayResult, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.paid = append(o.paid, p)
	return o.order, o.result, o.err
}

func (o *orders) OutboxReturned(_ context.Context, id int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.returned = append(o.returned, id)
	return nil
}

func (o *orders) SalesToPrepare(context.Context, time.Duration) ([]seckill.Sale, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sales++
	return []seckill.Sale{{ID: "june", Epoch: 1}, {ID: "july"}}, o.err
}

// claims is a Redis that answers what a test sets.
type claims struct {
	mu       sync.Mutex
	claim    seckill.Claim // the only one, none if its ID is empty
	err      error
	answers  []seckill.Settled
	lost     bool // Redis does not hold the sale
	restocks []seckill.Return
	asked    []string // in which sales
	onFind   func()
}

func (c *claims) FindAccepted(_ context.Context, sales []string, id string) (seckill.AcceptedClaim, seckill.Claim, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = sales
	if c.onFind != nil {
		c.onFind()
	}
	if c.err == nil && c.claim.ID != id {
		return seckill.AcceptedClaim{}, seckill.Claim{}, seckill.ErrNotFound
	}
	return seckill.AcceptedClaim{Claim: c.claim.ID, Sale: "june", Buyer: c.claim.Buyer, Quantity: 1}, c.claim, c.err
}

func (c *claims) Stocks(_ context.Context, sales []string) (map[string]int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stocks := map[string]int64{}
	for _, sale := range sales {
		if !c.lost {
			stocks[sale] = 0
		}
	}
	return stocks, c.err
}

func (c *claims) Restock(_ context.Context, _ string, returns []seckill.Return) ([]seckill.Settled, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.restocks = append(c.restocks, returns...)
	return c.answers, c.err
}

// bearer is an identity that believes the token.
type bearer struct{}

func (bearer) Buyer(r *http.Request) (string, error) {
	buyer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return "", problem.ErrUnauthenticated
	}
	return buyer, nil
}

// shop is a Handler with what it works on.
type shop struct {
	http.Handler
	orders   *orders
	claims   *claims
	webhooks *payment.Webhooks
}

// unpaid is alice's order, payable for another 15 minutes.
func unpaid() seckill.Order {
	return seckill.Order{
		ID: orderID, Sale: "june", SKU: "phone", Buyer: "alice", Quantity: 1, PriceMinor: 9900, AmountMinor: 9900,
		Currency: "CNY", Status: seckill.OrderUnpaid, CreatedAt: now.Add(-time.Minute), PayBy: now.Add(15 * time.Minute),
	}
}

func newShop(t *testing.T) *shop {
	t.Helper()
	webhooks, err := payment.NewWebhooks(secret)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := payment.NewSimulated(webhooks, "http://pay.test/pay", "")
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{
		orders: &orders{order: unpaid(), row: seckill.OutboxRow{
			ID: 7, Sale: "june", Returns: []seckill.Return{{Claim: orderID, Buyer: "alice", Quantity: 1}},
		}},
		claims:   &claims{answers: []seckill.Settled{seckill.SettledDone}},
		webhooks: webhooks,
	}
	s.Handler = orderhttp.New(s.orders, s.claims, bearer{}, provider, func() time.Time { return now })
	return s
}

type answer struct {
	status int
	header http.Header
	body   string
	fields map[string]any
}

// code returns the problem's code.
func (a answer) code() string {
	code, _ := a.fields["code"].(string)
	return code
}

func send(h http.Handler, r *http.Request) answer {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header(), body: w.Body.String()}
	_ = json.Unmarshal(w.Body.Bytes(), &a.fields)
	return a
}

// ask sends a request of alice's with a JSON body, unless header says otherwise.
func ask(h http.Handler, method, path, body string, header ...string) answer {
	r := httptest.NewRequestWithContext(context.Background(), method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer alice")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return send(h, r)
}

// notify sends a signed callback with the given message id.
func notify(t *testing.T, h http.Handler, webhooks *payment.Webhooks, id, body string) answer {
	t.Helper()
	header, err := webhooks.Sign(id, time.Now(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/payments/callback", strings.NewReader(body))
	r.Header = header
	r.Header.Set("Content-Type", "application/json")
	return send(h, r)
}

func wantAnswer(t *testing.T, a answer, status int, code string) {
	t.Helper()
	if a.status != status || a.code() != code {
		t.Errorf("answer %d %s, want %d %s", a.status, a.body, status, code)
	}
}
