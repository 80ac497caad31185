package orderhttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/shared/payment"
	"seckill/shared/seckill"
)

const succeeded = `{"order":"` + orderID + `","payment":"p1","amount_minor":9900,"currency":"CNY","status":"succeeded"}`

func TestCallbackAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		result seckill.PayResult
		err    error
		status int
		code   string
	}{
		"applied":     {result: seckill.PayApplied, status: 200},
		"duplicate":   {result: seckill.PayDuplicate, status: 200},
		"refund due":  {result: seckill.PayRefundDue, status: 200},
		"mismatch":    {result: seckill.PayMismatch, status: 422, code: "amount_mismatch"},
		"not written": {err: seckill.ErrPending, status: 503, code: "order_pending"},
		"not known":   {err: seckill.ErrNotFound, status: 503, code: "order_pending"},
		"id reused":   {err: seckill.ErrKeyReused, status: 422, code: "key_reused"},
		"mysql away":  {err: errDown, status: 503, code: "unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.orders.result, s.orders.err = test.result, test.err
			a := notify(t, s, s.webhooks, "msg_1", succeeded)
			wantAnswer(t, a, test.status, test.code)
			if test.status == 200 && a.fields["result"] != string(test.result) {
				t.Errorf("result %s, want %s", a.body, test.result)
			}
			if test.status == 503 && a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			want := seckill.Payment{
				Callback: "msg_1", Order: orderID, Provider: "simulated", Reference: "p1", AmountMinor: 9900, Currency: "CNY",
			}
			if len(s.orders.paid) != 1 || s.orders.paid[0] != want {
				t.Errorf("store was told %+v, want %+v", s.orders.paid, want)
			}
			if len(s.claims.restocks) != 0 {
				t.Error("Redis was changed by a payment")
			}
		})
	}
}

func TestForgedCallbacksReachNobody(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	other, err := payment.NewWebhooks(strings.ToUpper(secret))
	if err != nil {
		t.Fatal(err)
	}
	wantAnswer(t, notify(t, s, other, "msg_1", succeeded), http.StatusUnauthorized, "unverified")
	wantAnswer(t, ask(s, http.MethodPost, "/payments/callback", succeeded), http.StatusUnauthorized, "unverified")
	for name, spoil := range map[string]func(at time.Time, body string) (time.Time, string){
		"altered by a space": func(at time.Time, body string) (time.Time, string) { return at, body + " " },
		"for another order": func(at time.Time, body string) (time.Time, string) {
			return at, strings.ReplaceAll(body, orderID, unknownID)
		},
		"old":             func(at time.Time, body string) (time.Time, string) { return at.Add(-6 * time.Minute), body },
		"from the future": func(at time.Time, body string) (time.Time, string) { return at.Add(6 * time.Minute), body },
	} {
		at, body := spoil(time.Now(), succeeded)
		header, err := s.webhooks.Sign("msg_1", at, []byte(succeeded))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/payments/callback", strings.NewReader(body))
		r.Header = header
		if a := send(s, r); a.status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if len(s.orders.paid) != 0 {
		t.Errorf("the store was told %v", s.orders.paid)
	}
}

func TestFailedPaymentChangesNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.orders.order.Status = seckill.OrderPaid
	before := s.orders.order
	for range 2 {
		a := notify(t, s, s.webhooks, "msg_1", strings.Replace(succeeded, "succeeded", "failed", 1))
		if a.status != http.StatusOK || a.fields["result"] != "ignored" {
			t.Errorf("answer %d %s", a.status, a.body)
		}
	}
	if len(s.orders.paid) != 0 || s.orders.order != before {
		t.Errorf("the store was told %v", s.orders.paid)
	}
}

func TestUnreadableCallbacks(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	with := func(key, value string) string {
		return strings.Replace(succeeded, `"amount_minor":9900`, `"`+key+`":`+value, 1)
	}
	for body, status := range map[string]int{
		"": 400, "null": 400, "{}": 400, "[]": 400, succeeded + "x": 400,
		with("amount_minor", "99.001"): 400, with("amount_minor", `"9900"`): 400, with("amount_minor", "9.9e3"): 400,
		with("amount_minor", "null"): 400, with("AMOUNT_MINOR", "9900"): 400,
		with("amount_minor", `9900,"amount_minor":1`):      400,
		strings.Replace(succeeded, "CNY", "cny", 1):        400,
		strings.Replace(succeeded, orderID, "1", 1):        400,
		strings.Replace(succeeded, "succeeded", "paid", 1): 400,
		strings.Replace(succeeded, `"p1"`, `""`, 1):        400,
		succeeded + strings.Repeat(" ", 64<<10):            413,
		strings.Repeat("[", 60_000):                        400,
	} {
		if a := notify(t, s, s.webhooks, "msg_1", body); a.status != status {
			t.Errorf("%.120q: %d %s, want %d", body, a.status, a.body, status)
		}
	}
	if len(s.orders.paid) != 0 {
		t.Errorf("the store was told %v", s.orders.paid)
	}
}
