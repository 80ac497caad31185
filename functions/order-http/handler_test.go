package orderhttp_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/shared/seckill"
)

func TestOrderDocument(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	a := ask(s, http.MethodGet, "/orders/"+orderID, "")
	want := `{"id":"` + orderID + `","sale":"june","sku":"phone","buyer":"alice","quantity":1,"amount_minor":9900,` +
		`"currency":"CNY","status":"unpaid","created_at":"2026-06-18T11:59:00Z","pay_by":"2026-06-18T12:15:00Z"}` + "\n"
	if a.status != http.StatusOK || a.body != want || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("answer %d %v\n%swant\n%s", a.status, a.header, a.body, want)
	}
	s.orders.order.Status, s.orders.order.PaidAt = seckill.OrderPaid, now
	if a := ask(s, http.MethodGet, "/orders/"+orderID, ""); a.fields["paid_at"] != "2026-06-18T12:00:00Z" {
		t.Errorf("paid order: %s", a.body)
	}
}

func TestOrderIsExpiredPastItsDeadline(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.orders.order.PayBy = now
	if a := ask(s, http.MethodGet, "/orders/"+orderID, ""); a.fields["status"] != "expired" {
		t.Errorf("read: %s", a.body)
	}
	a := ask(s, http.MethodPost, "/orders/"+orderID+"/payment", "")
	wantAnswer(t, a, http.StatusConflict, "conflict")
	if !strings.Contains(a.body, "expired") {
		t.Errorf("payment: %s", a.body)
	}
}

func TestOthersOrdersLookLikeNone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.claims.claim = seckill.Claim{ID: orderID, Buyer: "alice", Status: seckill.ClaimReserved}
	for _, call := range []struct{ method, suffix string }{
		{http.MethodGet, ""}, {http.MethodPost, "/cancel"}, {http.MethodPost, "/payment"},
	} {
		for _, written := range []bool{true, false} {
			s.orders.order = unpaid()
			if !written {
				s.orders.order = seckill.Order{}
			}
			others := ask(s, call.method, "/orders/"+orderID+call.suffix, "", "Authorization", "Bearer bob")
			asked := s.claims.asked
			s.claims.asked = nil
			none := ask(s, call.method, "/orders/"+unknownID+call.suffix, "", "Authorization", "Bearer bob")
			malformed := ask(s, call.method, "/orders/1"+call.suffix, "", "Authorization", "Bearer bob")
			wantAnswer(t, others, http.StatusNotFound, "not_found")
			if others.body != none.body || none.body != malformed.body || len(others.header) != len(none.header) {
				t.Errorf("%s: others %s none %s malformed %s", call.suffix, others.body, none.body, malformed.body)
			}
			if len(asked) != len(s.claims.asked) {
				t.Errorf("%s: other ways are taken for others' orders and for none", call.suffix)
			}
		}
	}
	if len(s.orders.written) != 0 || len(s.claims.restocks) != 0 {
		t.Errorf("something was cancelled: %v", s.orders.written)
	}
}

func TestNobodyIsRefused(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, call := range []struct{ method, suffix string }{
		{http.MethodGet, ""}, {http.MethodPost, "/cancel"}, {http.MethodPost, "/payment"},
	} {
		a := ask(s, call.method, "/orders/"+orderID+call.suffix, "", "Authorization", "alice", "X-User-Id", "alice")
		wantAnswer(t, a, http.StatusUnauthorized, "unauthenticated")
	}
	if s.orders.order != unpaid() {
		t.Errorf("the order changed: %+v", s.orders.order)
	}
}

func TestPendingAndUnknownDiffer(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.orders.order = seckill.Order{}
	s.claims.claim = seckill.Claim{ID: orderID, Buyer: "alice", Status: seckill.ClaimReserved}
	for _, r := range []answer{
		ask(s, http.MethodGet, "/orders/"+orderID, ""),
		ask(s, http.MethodPost, "/orders/"+orderID+"/payment", "{}"),
	} {
		wantAnswer(t, r, http.StatusNotFound, "order_pending")
		if r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	// Redis away: there may be a claim, so "not found" would be a lie.
	s.claims.err = errDown
	wantAnswer(t, ask(s, http.MethodGet, "/orders/"+orderID, ""), http.StatusServiceUnavailable, "unavailable")
	wantAnswer(t, ask(s, http.MethodPost, "/orders/"+orderID+"/cancel", ""), http.StatusServiceUnavailable, "unavailable")
	// Redis came back without the sale: the claim's event may be on its way.
	s.claims.err, s.claims.claim, s.claims.lost = nil, seckill.Claim{}, true
	wantAnswer(t, ask(s, http.MethodGet, "/orders/"+orderID, ""), http.StatusServiceUnavailable, "unavailable")
	wantAnswer(t, ask(s, http.MethodPost, "/orders/"+orderID+"/cancel", ""), http.StatusServiceUnavailable, "unavailable")
	s.claims.lost, s.orders.err = false, errDown
	wantAnswer(t, ask(s, http.MethodGet, "/orders/"+orderID, ""), http.StatusServiceUnavailable, "unavailable")
}

func TestOrderWrittenWhileLookedFor(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "/cancel"} {
		for _, findErr := range []error{nil, seckill.ErrPending} {
			s := newShop(t)
			s.orders.order = seckill.Order{}
			s.claims.claim = seckill.Claim{ID: orderID, Buyer: "alice", Status: seckill.ClaimOrdered}
			s.claims.err = findErr
			if findErr != nil {
				s.claims.claim.Status = seckill.ClaimReserved
			}
			s.claims.onFind = func() { s.orders.order = unpaid() }
			method := http.MethodGet
			if suffix != "" {
				method = http.MethodPost
			}
			if a := ask(s, method, "/orders/"+orderID+suffix, ""); a.status != http.StatusOK || a.fields["id"] != orderID {
				t.Errorf("%s (%v): answer %d %s", suffix, findErr, a.status, a.body)
			}
			if len(s.orders.written) != 0 {
				t.Error("a written order was cancelled as unwritten")
			}
		}
	}
}

func TestSalesAreReadOncePerSecond(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 5 {
		ask(s, http.MethodGet, "/orders/"+unknownID, "")
	}
	if s.orders.sales != 1 {
		t.Errorf("the sales were read %d times", s.orders.sales)
	}
}

func TestCancelGivesBackOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for range 3 {
		if a := ask(s, http.MethodPost, "/orders/"+orderID+"/cancel", "{}"); a.status != http.StatusOK || a.fields["status"] != "cancelled" {
			t.Errorf("answer %d %s", a.status, a.body)
		}
	}
	if len(s.claims.restocks) != 1 || s.claims.restocks[0].Claim != orderID || len(s.orders.returned) != 1 || s.orders.returned[0] != 7 {
		t.Errorf("restocked %v, noted %v; want both once", s.claims.restocks, s.orders.returned)
	}
}

func TestCancelDoesNotFailWithTheRestock(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*claims){
		"redis away": func(c *claims) { c.err = errDown },
		"fenced":     func(c *claims) { c.answers = []seckill.Settled{seckill.SettledFenced} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			spoil(s.claims)
			if a := ask(s, http.MethodPost, "/orders/"+orderID+"/cancel", ""); a.status != http.StatusOK {
				t.Errorf("answer %d %s", a.status, a.body)
			}
			if len(s.orders.returned) != 0 {
				t.Error("units that are not back were noted as returned: nobody would give them back")
			}
		})
	}
}

func TestCancelBeforeTheOrderIsWritten(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.orders.order = seckill.Order{}
	s.claims.claim = seckill.Claim{ID: orderID, Buyer: "alice", Status: seckill.ClaimReserved}
	a := ask(s, http.MethodPost, "/orders/"+orderID+"/cancel", "")
	if a.status != http.StatusOK || a.fields["status"] != "cancelled" {
		t.Errorf("answer %d %s", a.status, a.body)
	}
	if len(s.orders.written) != 1 || s.orders.written[0].Claim != orderID || len(s.claims.restocks) != 1 {
		t.Errorf("written %v, restocked %v", s.orders.written, s.claims.restocks)
	}
}

func TestPaymentOfAPaidOrderConflicts(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.orders.order.Status = seckill.OrderPaid
	a := ask(s, http.MethodPost, "/orders/"+orderID+"/payment", "")
	wantAnswer(t, a, http.StatusConflict, "conflict")
	if !strings.Contains(a.body, "paid") || len(s.claims.restocks) != 0 {
		t.Errorf("%s, restocked %v", a.body, s.claims.restocks)
	}
}

func TestCancelOfAPaidOrderStartsItsRefund(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.orders.order.Status = seckill.OrderPaid
	for range 2 {
		a := ask(s, http.MethodPost, "/orders/"+orderID+"/cancel", "")
		if a.status != http.StatusOK || a.fields["status"] != "refunding" || !strings.Contains(a.body, `"refund":{"amount_minor":9900,"status":"due"}`) {
			t.Errorf("answer %d %s", a.status, a.body)
		}
	}
	if len(s.claims.restocks) != 1 || len(s.orders.returned) != 1 {
		t.Errorf("restocked %v, returned %v", s.claims.restocks, s.orders.returned)
	}
}

func TestStartedPaymentIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	first := ask(s, http.MethodPost, "/orders/"+orderID+"/payment", "")
	if first.status != http.StatusOK || first.fields["order"] != orderID || first.fields["amount_minor"] != 9900.0 ||
		first.fields["currency"] != "CNY" || first.fields["status"] != "pending" {
		t.Fatalf("answer %d %s", first.status, first.body)
	}
	if url, _ := first.fields["pay_url"].(string); !strings.HasPrefix(url, "http://pay.test/pay/") {
		t.Errorf("pay_url %q", url)
	}
	if again := ask(s, http.MethodPost, "/orders/"+orderID+"/payment", "{}"); again.body != first.body {
		t.Errorf("again %s, first %s", again.body, first.body)
	}
	if s.orders.order != unpaid() {
		t.Errorf("the order changed: %+v", s.orders.order)
	}
}

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for _, path := range []string{"/", "/orders", "/orders/", "/orders/" + orderID + "/refund", "/orders/" + orderID + "/cancel/x", "/payments"} {
		wantAnswer(t, ask(s, http.MethodPost, path, ""), http.StatusNotFound, "not_found")
	}
	for path, want := range map[string]string{
		"/orders/" + orderID: "GET, HEAD", "/orders/" + orderID + "/cancel": "POST", "/payments/callback": "POST",
	} {
		a := ask(s, http.MethodDelete, path, "")
		wantAnswer(t, a, http.StatusMethodNotAllowed, "method_not_allowed")
		if a.header.Get("Allow") != want {
			t.Errorf("%s: Allow %q, want %q", path, a.header.Get("Allow"), want)
		}
	}
}

// cut is a body whose connection breaks.
type cut struct{ io.Reader }

func (c cut) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func TestBadBodiesChangeNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	for body, status := range map[string]int{
		"null": 400, "[]": 400, `"x"`: 400, "{": 400, "{} {}": 400, "\ufeff{}": 400, " ": 400,
		`{"amount_minor":1}`: 400, `{"user_id":"bob"}`: 400, `{"status":"paid"}`: 400,
		"{}" + strings.Repeat(" ", 2000): 413,
	} {
		for _, suffix := range []string{"/cancel", "/payment"} {
			if a := ask(s, http.MethodPost, "/orders/"+orderID+suffix, body); a.status != status {
				t.Errorf("%s with %.20q: %d, want %d", suffix, body, a.status, status)
			}
		}
	}
	if a := ask(s, http.MethodPost, "/orders/"+orderID+"/cancel", "{}", "Content-Type", "text/plain"); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d", a.status)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/"+orderID+"/cancel", cut{strings.NewReader("{}")})
	r.Header.Set("Authorization", "Bearer alice")
	r.Header.Set("Content-Type", "application/json")
	wantAnswer(t, send(s, r), http.StatusBadRequest, "invalid")
	if s.orders.order != unpaid() || len(s.claims.restocks) != 0 {
		t.Errorf("something changed: %+v %v", s.orders.order, s.claims.restocks)
	}
}

func TestDeadlineIsNotMovedByPayments(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	payBy := s.orders.order.PayBy
	for range 10 {
		ask(s, http.MethodPost, "/orders/"+orderID+"/payment", "")
	}
	if !s.orders.order.PayBy.Equal(payBy) || payBy.Sub(now) != 15*time.Minute {
		t.Errorf("pay_by moved to %s", s.orders.order.PayBy)
	}
}
