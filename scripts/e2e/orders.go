package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"seckill/shared/payment"
)

// orders waits until every winner is told of his order.
func (s *shop) orders(ctx context.Context) error {
	start := time.Now()
	for _, w := range s.winners {
		err := poll(ctx, settleMax, "claim "+w.claim, func(ctx context.Context) error {
			a, err := s.client.do(ctx, "seckill-http", "GET /sales/"+s.sale+"/claims/"+w.claim, w.buyer, "")
			var claim struct{ Status string }
			if err == nil {
				err = json.Unmarshal(a.body, &claim)
			}
			if err == nil && claim.Status != "ordered" {
				err = fmt.Errorf("%d %s", a.status, a.body)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	s.figures.add("from the rush to every claim an order (bridge and order-consumer from zero)", "%s", time.Since(start).Round(time.Millisecond))
	return nil
}

// payAndCancel lets a third of the winners pay and a third cancel.
func (s *shop) payAndCancel(ctx context.Context) error {
	key, err := secret(ctx, "payment-webhook-secret")
	if err != nil {
		return err
	}
	webhooks, err := payment.NewWebhooks(key)
	if err != nil {
		return fmt.Errorf("payment-webhook-secret: %w", err)
	}
	third := len(s.winners) / 3
	for _, w := range s.winners[:third] {
		if err := s.pay(ctx, webhooks, w); err != nil {
			return err
		}
	}
	for _, w := range s.winners[third : 2*third] {
		a, err := s.client.do(ctx, "order-http", "POST /orders/"+w.claim+"/cancel", w.buyer, "")
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return fmt.Errorf("cancel is answered %d: %s", a.status, a.body)
		}
	}
	return nil
}

// pay sends what a provider sends when a buyer has paid.
func (s *shop) pay(ctx context.Context, webhooks *payment.Webhooks, w winner) error {
	body, err := json.Marshal(payment.Callback{Order: w.claim, Payment: "e2e-" + w.claim, AmountMinor: 9900, Currency: "CNY", Status: payment.Succeeded})
	if err != nil {
		return fmt.Errorf("pay order %s: %w", w.claim, err)
	}
	header, err := webhooks.Sign("e2e-"+w.claim, time.Now(), body)
	if err != nil {
		return fmt.Errorf("pay order %s: %w", w.claim, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.client.gateway+"/payments/callback", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("pay order %s: %w", w.claim, err)
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	a, err := s.client.send("order-http", request)
	if err != nil {
		return err
	}
	if a.status/100 != 2 {
		return fmt.Errorf("the callback is answered %d: %s", a.status, a.body)
	}
	return nil
}

// expire waits until the cron has expired what nobody paid or cancelled; then
// the laws hold and the stock is right to the unit.
func (s *shop) expire(ctx context.Context) error {
	third := int64(len(s.winners) / 3)
	want := map[string]int64{"paid": third, "cancelled": third, "expired": int64(len(s.winners)) - 2*third}
	err := poll(ctx, settleMax, "audit", func(ctx context.Context) error {
		out, err := s.tool(ctx, nil, "audit", s.sale)
		if err != nil {
			return err
		}
		var audit struct {
			Stock  *int64
			Orders map[string]int64
			Laws   map[string]bool
		}
		if err := json.Unmarshal([]byte(out), &audit); err != nil {
			return fmt.Errorf("read audit: %w", err)
		}
		for law, holds := range audit.Laws {
			if !holds {
				return fmt.Errorf("law %s does not hold: %s", law, out)
			}
		}
		for status, n := range want {
			if audit.Orders[status] != n {
				return fmt.Errorf("want %d %s: %s", n, status, out)
			}
		}
		if audit.Stock == nil || *audit.Stock != int64(s.units)-third {
			return fmt.Errorf("want a stock of %d: %s", int64(s.units)-third, out)
		}
		return nil
	})
	if err == nil {
		s.figures.add("audit", "%d paid, %d cancelled, %d expired by the cron, %d units back in stock, every law holds", third, third, want["expired"], int64(s.units)-third)
	}
	return err
}

// inside checks that the outside does not reach what is cluster-local.
func (s *shop) inside(ctx context.Context) error {
	for _, function := range internal {
		a, err := s.client.do(ctx, function, "POST /", "", "{}")
		if err != nil {
			return err
		}
		if a.status != http.StatusNotFound {
			return fmt.Errorf("%s answers the outside: %d %s", function, a.status, a.body)
		}
	}
	return nil
}
