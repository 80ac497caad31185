package payment

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
	// laterMax bounds sending callbacks that are late.
	laterMax = time.Minute
	// answerMax bounds what is read of the answer to a callback.
	answerMax = 64 << 10
)

// messagesOf are the callbacks about a payment that ended, in their order.
func messagesOf(t ticket, status Status, as string) ([]Callback, error) {
	c := Callback{
		Order: t.order, Payment: idOf(t.order), AmountMinor: t.amountMinor, Currency: t.currency, Status: status,
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	other := c
	switch as {
	case "", "once":
		return []Callback{c}, nil
	case "twice":
		return []Callback{c, c}, nil
	case "double":
		other.Payment = idOf(t.order + " again")
		return []Callback{c, other}, nil
	case "disordered":
		other.Status = Failed
		return []Callback{c, other}, nil
	case "amount":
		c.Payment, c.AmountMinor = idOf(t.order+" amount"), t.amountMinor+1
		return []Callback{c}, nil
	case "currency":
		c.Payment, c.Currency = idOf(t.order+" currency"), "XXX"
		return []Callback{c}, nil
	}
	return nil, fmt.Errorf("as: %q is not known", as)
}

// sendLater sends callbacks after a while. Nothing but this process remembers
// them until then.
func (s *Simulated) sendLater(ctx context.Context, messages []Callback, after time.Duration) {
	time.AfterFunc(after, func() {
		ctx, cancel := context.WithTimeout(ctx, laterMax)
		defer cancel()
		for _, m := range messages {
			if status, err := s.send(ctx, m); err != nil || status >= http.StatusInternalServerError {
				slog.Warn("late payment callback not accepted", "order", m.Order, "status", status, "err", err)
			}
		}
	})
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
