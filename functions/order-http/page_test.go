package orderhttp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	orderhttp "seckill/functions/order-http"
	"seckill/shared/payment"
)

// The simulated provider's pages are served only where that is asked for; one
// that is pays by the function's own callback.
func TestPayPageIsServedWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	wantAnswer(t, ask(s, http.MethodGet, "/pay/x", ""), http.StatusNotFound, "not_found")
	server := httptest.NewUnstartedServer(nil)
	base := "http://" + server.Listener.Addr().String()
	provider, err := payment.NewSimulated(s.webhooks, base+"/pay", base+"/payments/callback")
	if err != nil {
		t.Fatal(err)
	}
	h := orderhttp.New(s.orders, s.claims, bearer{}, provider, func() time.Time { return now }).PaysAt(provider)
	server.Config.Handler = h
	server.Start()
	t.Cleanup(server.Close)
	url, _ := ask(h, http.MethodPost, "/orders/"+orderID+"/payment", "").fields["pay_url"].(string)
	path := strings.TrimPrefix(url, base)
	if page := ask(h, http.MethodGet, path, ""); page.status != http.StatusOK || !strings.Contains(page.body, "99.00 CNY") {
		t.Errorf("%s is answered %d %s", url, page.status, page.body)
	}
	paid := ask(h, http.MethodPost, path, "status=succeeded", "Content-Type", "application/x-www-form-urlencoded")
	if paid.status != http.StatusOK || paid.fields["callback_status"] != 200.0 {
		t.Errorf("paying is answered %d %s", paid.status, paid.body)
	}
	if len(s.orders.paid) != 1 || s.orders.paid[0].Order != orderID {
		t.Errorf("recorded %+v", s.orders.paid)
	}
	wantAnswer(t, ask(h, http.MethodGet, "/nothing", ""), http.StatusNotFound, "not_found")
	wantAnswer(t, ask(h, http.MethodPut, "/orders/"+orderID, ""), http.StatusMethodNotAllowed, "method_not_allowed")
}
