package payment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"time"
)

const (
	callbackTimeout = 10 * time.Second
	// callbackTries is how often a callback is sent before the pay page gives
	// up; a real provider goes on for days.
	callbackTries = 5
	callbackPause = 500 * time.Millisecond
	// answerMax bounds what is read of the answer to a callback.
	answerMax = 64 << 10
)

// payPage takes the order, the amount and the currency. It is no template:
// html/template keeps the linker from leaving out any method of any package,
// and makes the function twice as large.
const payPage = `<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Pay</title>
<h1>Simulated payment</h1>
<p>Order %s: %d (minor units) %s</p>
<form method="post">
<button name="status" value="succeeded">Pay</button>
<button name="status" value="failed">Fail</button>
</form>
`

// ServeHTTP is the pay page, to be mounted at the path of payURL. GET shows
// it; POST ends the payment (form value "status": succeeded, the default, or
// failed), sends the callback and answers 200 with
// {"payment","status","callback_status"}, the last being the status the
// callback was answered with, or 502 if it was never accepted.
func (s *Simulated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t, ok := s.ticketOf(r)
	if !ok {
		http.Error(w, "no such payment", http.StatusNotFound)
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = fmt.Fprintf(w, payPage, html.EscapeString(t.order), t.amountMinor, html.EscapeString(t.currency))
	case http.MethodPost:
		s.end(w, r, t)
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

func (s *Simulated) end(w http.ResponseWriter, r *http.Request, t ticket) {
	status := Succeeded
	r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
	if value := r.PostFormValue("status"); value != "" {
		status = Status(value)
	}
	c := Callback{
		Order: t.order, Payment: idOf(t.order), AmountMinor: t.amountMinor, Currency: t.currency, Status: status,
	}
	if err := c.Validate(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answered, err := s.send(r.Context(), c)
	code := http.StatusOK
	if err != nil || answered >= http.StatusInternalServerError {
		code = http.StatusBadGateway
		slog.WarnContext(r.Context(), "payment callback not accepted", "order", c.Order, "status", answered, "err", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(struct {
		Payment        string `json:"payment"`
		Status         Status `json:"status"`
		CallbackStatus int    `json:"callback_status"`
	}{c.Payment, c.Status, answered})
}

// send signs a callback and sends it to the callback URL, again and again
// (5 times, half a second apart) while the receiver cannot take it, and
// returns the last HTTP status. A payment that ends the same way is the same
// message.
func (s *Simulated) send(ctx context.Context, c Callback) (int, error) {
	body, err := json.Marshal(c)
	if err != nil {
		return 0, fmt.Errorf("send callback of order %s: %w", c.Order, err)
	}
	var status int
	for try := 1; ; try++ {
		status, err = s.post(ctx, "msg_"+c.Payment+"_"+string(c.Status), body)
		if err == nil && status < http.StatusInternalServerError && status != http.StatusTooManyRequests || try == callbackTries {
			break
		}
		pause := time.NewTimer(callbackPause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return status, fmt.Errorf("send callback of order %s: %w", c.Order, context.Cause(ctx))
		}
	}
	if err != nil {
		return 0, fmt.Errorf("send callback of order %s: %w", c.Order, err)
	}
	return status, nil
}

func (s *Simulated) post(ctx context.Context, id string, body []byte) (int, error) {
	header, err := s.webhooks.Sign(id, s.now(), body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.callback, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("build callback: %w", err)
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("post callback: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing to do about it
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, answerMax))
	return response.StatusCode, nil
}
