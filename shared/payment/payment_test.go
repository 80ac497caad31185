package payment_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/shared/payment"
	"seckill/shared/seckill"
)

const (
	secret  = "a-secret-of-more-than-24-bytes"
	orderID = "0193a4c2-7b1e-7c3d-8e4f-5a6b7c8d9e0f"
)

func webhooks(t *testing.T, secret string) *payment.Webhooks {
	t.Helper()
	w, err := payment.NewWebhooks(secret)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func signed(t *testing.T, w *payment.Webhooks, at time.Time, body string) http.Header {
	t.Helper()
	header, err := w.Sign("msg_1", at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return header
}

func TestWebhooksVerifyWhatTheySigned(t *testing.T) {
	t.Parallel()
	encoded := "whsec_" + base64.StdEncoding.EncodeToString([]byte(secret))
	header := signed(t, webhooks(t, secret), time.Now(), "body")
	for _, s := range []string{secret, encoded} {
		id, err := webhooks(t, s).Verify(header, []byte("body"))
		if err != nil || id != "msg_1" {
			t.Errorf("with %s: id %q, error %v", s, id, err)
		}
	}
}

func TestWebhooksRefuseForgedAndOld(t *testing.T) {
	t.Parallel()
	w := webhooks(t, secret)
	now := time.Now()
	tests := map[string]struct {
		header http.Header
		body   string
	}{
		"unsigned":    {http.Header{}, "body"},
		"another key": {signed(t, webhooks(t, strings.ToUpper(secret)), now, "body"), "body"},
		"altered":     {signed(t, w, now, "body"), "body "},
		"old":         {signed(t, w, now.Add(-6*time.Minute), "body"), "body"},
		"early":       {signed(t, w, now.Add(6*time.Minute), "body"), "body"},
		"another id": {func() http.Header {
			h := signed(t, w, now, "body")
			h.Set("webhook-id", "msg_2")
			return h
		}(), "body"},
		"two ids": {func() http.Header {
			h := signed(t, w, now, "body")
			h.Add("webhook-id", "msg_2")
			return h
		}(), "body"},
		"huge id": {func() http.Header {
			h := signed(t, w, now, "body")
			h.Set("webhook-id", strings.Repeat("x", 129))
			return h
		}(), "body"},
		"no version": {func() http.Header {
			h := signed(t, w, now, "body")
			h.Set("webhook-signature", strings.TrimPrefix(h.Get("webhook-signature"), "v1,"))
			return h
		}(), "body"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if id, err := w.Verify(test.header, []byte(test.body)); !errors.Is(err, payment.ErrUnverified) {
				t.Errorf("id %q, error %v; want ErrUnverified", id, err)
			}
		})
	}
}

func TestNewWebhooksRefusesWeakSecrets(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "short", "whsec_", "whsec_c2hvcnQ=", "whsec_not base64, but long enough to be one"} {
		if _, err := payment.NewWebhooks(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

// receiver is a shop that answers callbacks with the given statuses in turn.
type receiver struct {
	webhooks *payment.Webhooks
	statuses []int

	mu   sync.Mutex
	ids  []string
	last payment.Callback
}

func (rc *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rc.mu.Lock()
	defer rc.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, err := rc.webhooks.Verify(r.Header, body)
	if err != nil || json.Unmarshal(body, &rc.last) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	rc.ids = append(rc.ids, id)
	w.WriteHeader(rc.statuses[min(len(rc.ids), len(rc.statuses))-1])
}

func startedAt(t *testing.T, rc *receiver) (*payment.Simulated, string) {
	t.Helper()
	shop := httptest.NewServer(rc)
	t.Cleanup(shop.Close)
	provider, err := payment.NewSimulated(rc.webhooks, "http://pay.test/pay/", shop.URL)
	if err != nil {
		t.Fatal(err)
	}
	order := seckill.Order{ID: orderID, SKU: "tea", AmountMinor: 9900, Currency: "CNY"}
	first, err := provider.Start(context.Background(), order)
	if err != nil {
		t.Fatal(err)
	}
	again, err := provider.Start(context.Background(), order)
	if err != nil || first != again {
		t.Fatalf("started again: %v, %v; want %v", again, err, first)
	}
	if !strings.HasPrefix(first.URL, "http://pay.test/pay/"+first.ID+"?") {
		t.Fatalf("pay URL %q", first.URL)
	}
	return provider, first.URL
}

func call(provider http.Handler, method, url, form string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(context.Background(), method, url, strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	provider.ServeHTTP(w, r)
	return w
}

func TestSimulatedRepeatsTheCallbackUntilItIsTaken(t *testing.T) {
	t.Parallel()
	rc := &receiver{webhooks: webhooks(t, secret), statuses: []int{503, 200}}
	provider, payURL := startedAt(t, rc)
	if w := call(provider, http.MethodPost, payURL, ""); w.Code != http.StatusOK {
		t.Fatalf("answer %d %s", w.Code, w.Body)
	}
	want := payment.Callback{
		Order: orderID, Payment: rc.last.Payment, AmountMinor: 9900, Currency: "CNY", Status: payment.Succeeded,
	}
	if rc.last != want || len(rc.ids) != 2 || rc.ids[0] != rc.ids[1] {
		t.Errorf("callbacks %v, last %+v; want the same message twice: %+v", rc.ids, rc.last, want)
	}
}

func TestSimulatedPageAndFailure(t *testing.T) {
	t.Parallel()
	rc := &receiver{webhooks: webhooks(t, secret), statuses: []int{200}}
	provider, payURL := startedAt(t, rc)
	if w := call(provider, http.MethodGet, payURL, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), orderID) {
		t.Errorf("page: %d %s", w.Code, w.Body)
	}
	if w := call(provider, http.MethodPost, payURL, "status=failed"); w.Code != http.StatusOK || rc.last.Status != payment.Failed {
		t.Errorf("failed payment: %d, callback %+v", w.Code, rc.last)
	}
	if w := call(provider, http.MethodPost, payURL, "status=perhaps"); w.Code != http.StatusBadRequest || len(rc.ids) != 1 {
		t.Errorf("unknown status: %d, callbacks %v", w.Code, rc.ids)
	}
	if w := call(provider, http.MethodDelete, payURL, ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("DELETE: %d", w.Code)
	}
}

func TestSimulatedTellsTheShopInManyWays(t *testing.T) {
	t.Parallel()
	for as, want := range map[string]struct {
		ids      int // different messages
		messages int
		last     func(payment.Callback) bool
	}{
		"once":       {1, 1, func(c payment.Callback) bool { return c.AmountMinor == 9900 && c.Currency == "CNY" }},
		"twice":      {1, 2, func(c payment.Callback) bool { return c.Status == payment.Succeeded }},
		"double":     {2, 2, func(c payment.Callback) bool { return c.Status == payment.Succeeded }},
		"disordered": {2, 2, func(c payment.Callback) bool { return c.Status == payment.Failed }},
		"amount":     {1, 1, func(c payment.Callback) bool { return c.AmountMinor == 9901 }},
		"currency":   {1, 1, func(c payment.Callback) bool { return c.Currency == "XXX" }},
	} {
		rc := &receiver{webhooks: webhooks(t, secret), statuses: []int{200}}
		provider, payURL := startedAt(t, rc)
		w := call(provider, http.MethodPost, payURL, "as="+as)
		different := map[string]bool{}
		for _, id := range rc.ids {
			different[id] = true
		}
		if w.Code != http.StatusOK || len(rc.ids) != want.messages || len(different) != want.ids || !want.last(rc.last) {
			t.Errorf("%s: %d, messages %v, last %+v", as, w.Code, rc.ids, rc.last)
		}
	}
}

func TestSimulatedTellsTheShopLater(t *testing.T) {
	t.Parallel()
	rc := &receiver{webhooks: webhooks(t, secret), statuses: []int{200}}
	provider, payURL := startedAt(t, rc)
	w := call(provider, http.MethodPost, payURL, "after=1")
	rc.mu.Lock()
	early := len(rc.ids)
	rc.mu.Unlock()
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"callback_status":0`) || early != 0 {
		t.Errorf("answer %d %s, %d messages", w.Code, w.Body, early)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		rc.mu.Lock()
		n := len(rc.ids)
		rc.mu.Unlock()
		if n == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d messages", n)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, form := range []string{"after=-1", "after=3601", "after=x", "as=never"} {
		if w := call(provider, http.MethodPost, payURL, form); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", form, w.Code)
		}
	}
}

func TestSimulatedSendsABrowserBack(t *testing.T) {
	t.Parallel()
	rc := &receiver{webhooks: webhooks(t, secret), statuses: []int{200}}
	provider, payURL := startedAt(t, rc)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, payURL, http.NoBody)
	r.Header.Set("Accept", "text/html,*/*")
	w := httptest.NewRecorder()
	provider.ServeHTTP(w, r)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/items/tea" {
		t.Errorf("%d to %q", w.Code, w.Header().Get("Location"))
	}
}

func TestSimulatedRefusesAlteredURL(t *testing.T) {
	t.Parallel()
	rc := &receiver{webhooks: webhooks(t, secret), statuses: []int{200}}
	provider, payURL := startedAt(t, rc)
	u, err := url.Parse(payURL)
	if err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]string{"amount_minor": "1", "currency": "USD", "seal": "", "order": "x", "back": "https://elsewhere.test/"} {
		altered, query := *u, u.Query()
		query.Set(key, value)
		altered.RawQuery = query.Encode()
		if w := call(provider, http.MethodPost, altered.String(), ""); w.Code != http.StatusNotFound {
			t.Errorf("%s=%s: %d", key, value, w.Code)
		}
	}
	if len(rc.ids) != 0 {
		t.Errorf("callbacks were sent: %v", rc.ids)
	}
}

func TestNewSimulatedRefusesRelativeURLs(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"", "/pay", "pay", "ftp://x/", "http://", ":"} {
		if _, err := payment.NewSimulated(webhooks(t, secret), raw, ""); err == nil {
			t.Errorf("%q was taken", raw)
		}
	}
}

func TestCallbackValidate(t *testing.T) {
	t.Parallel()
	good := payment.Callback{Order: orderID, Payment: "p1", AmountMinor: 1, Currency: "CNY", Status: payment.Failed}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*payment.Callback){
		"order":    func(c *payment.Callback) { c.Order = "1" },
		"payment":  func(c *payment.Callback) { c.Payment = "" },
		"currency": func(c *payment.Callback) { c.Currency = "cny" },
		"status":   func(c *payment.Callback) { c.Status = "paid" },
	} {
		bad := good
		spoil(&bad)
		var fieldError *seckill.FieldError
		if err := bad.Validate(); !errors.As(err, &fieldError) || fieldError.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}
