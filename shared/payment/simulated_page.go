package payment

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// payPage takes the order, the amount and the currency. It is no template:
// html/template keeps the linker from leaving out any method of any package,
// and makes the function twice as large.
const payPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Pay</title>
<main>
<h1>Simulated payment · 模拟支付</h1>
<p>Order %s</p>
<p><strong>%s %s</strong></p>
<form method="post">
<p><button name="status" value="succeeded">Pay · 支付</button>
<button name="status" value="failed">Fail · 失败</button></p>
<fieldset><legend>What the shop is told · 商家收到的通知</legend>
<p><label for="as">How · 方式</label> <select name="as" id="as">
<option value="once">once</option>
<option value="twice">the same message twice</option>
<option value="double">two payments</option>
<option value="disordered">a failure after it</option>
<option value="amount">another amount</option>
<option value="currency">another currency</option>
</select></p>
<p><label for="after">Seconds later · 延迟（秒）</label> <input type="number" name="after" id="after" min="0" max="3600" value="0"></p>
</fieldset>
</form>
</main>
</html>
`

// afterMax bounds how late a callback may be sent, in seconds.
const afterMax = 3600

// ServeHTTP is the pay page, to be mounted at the path of payURL. GET shows
// it; POST ends the payment (form value "status": succeeded, the default, or
// failed) and sends callbacks: form value "as" says which ("once", the default,
// "twice", "double", "disordered", "amount" or "currency"), "after" how many
// seconds later. It answers a browser with 303 to where the order was made,
// anyone else 200 with {"payment","status","callback_status"}, the last being
// the status the last callback was answered with (0 if it is sent later), or
// 502 if it was never accepted.
func (s *Simulated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, ok := s.ticketOf(r)
	if !ok {
		http.Error(w, "no such payment", http.StatusNotFound)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		w.Header().Set("Referrer-Policy", "no-referrer")
		_, _ = fmt.Fprintf(w, payPage, html.EscapeString(t.order), major(t.amountMinor), html.EscapeString(t.currency))
	case http.MethodPost:
		s.end(w, r, t)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// major writes minor units with two decimals, which is good enough for play.
func major(minor int64) string { return fmt.Sprintf("%d.%02d", minor/100, minor%100) }

func (s *Simulated) end(w http.ResponseWriter, r *http.Request, t ticket) {
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	status := Succeeded
	if value := r.PostFormValue("status"); value != "" {
		status = Status(value)
	}
	messages, err := messagesOf(t, status, r.PostFormValue("as"))
	after := 0
	if value := r.PostFormValue("after"); err == nil && value != "" {
		if after, err = strconv.Atoi(value); err == nil && (after < 0 || after > afterMax) {
			err = fmt.Errorf("after: must be 0 to %d", afterMax)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if after > 0 {
		s.sendLater(context.WithoutCancel(r.Context()), messages, time.Duration(after)*time.Second)
		s.answer(w, r, t, outcome{payment: idOf(t.order), status: status, code: http.StatusOK})
		return
	}
	answered, code := 0, http.StatusOK
	for _, m := range messages {
		if answered, err = s.send(r.Context(), m); err != nil || answered >= http.StatusInternalServerError {
			code = http.StatusBadGateway
			slog.WarnContext(r.Context(), "payment callback not accepted", "order", m.Order, "status", answered, "err", err)
		}
	}
	s.answer(w, r, t, outcome{payment: idOf(t.order), status: status, answered: answered, code: code})
}

// outcome is what the page tells of an ended payment.
type outcome struct {
	payment  string
	status   Status
	answered int
	code     int
}

// answer sends a browser back to the shop, also when the shop could not be
// told: the buyer sees there that his order is not paid yet.
func (s *Simulated) answer(w http.ResponseWriter, r *http.Request, t ticket, o outcome) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, t.back, http.StatusSeeOther)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(o.code)
	_ = json.NewEncoder(w).Encode(struct {
		Payment        string `json:"payment"`
		Status         Status `json:"status"`
		CallbackStatus int    `json:"callback_status"`
	}{o.payment, o.status, o.answered})
}
