package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"seckill/shared/identity"
	"seckill/shared/seckill"
)

// demo is the id of the sale and the SKU of the item that local creates.
const demo = "demo"

// demoLength is how long the demo sale stays open.
const demoLength = 24 * time.Hour

// prepare makes the tables, the streams and the demo sale. Stores that live
// on keep a demo sale that cannot be changed to the options.
func (p *parts) prepare(ctx context.Context, o options) error {
	if err := p.mysql.Migrate(ctx); err != nil {
		return err
	}
	if err := p.queue.EnsureStreams(ctx); err != nil {
		return err
	}
	_, err := p.mysql.PutItem(ctx, seckill.Item{
		SKU: demo, Name: "限量茶 · Limited Tea", Description: "A demonstration of a flash sale.",
	})
	if err != nil {
		return err
	}
	opens := time.Now().Add(o.opensIn)
	_, err = p.mysql.PutSale(ctx, seckill.Sale{
		ID: demo, SKU: demo, PriceMinor: 9900, Currency: "CNY", Units: o.stock, Limit: o.limit,
		OpensAt: opens, ClosesAt: opens.Add(demoLength), PayWindow: o.payWindow,
	})
	if errors.Is(err, seckill.ErrConflict) {
		slog.Warn("the sale demo of an earlier run is kept as it is", "reason", err)
		return nil
	}
	return err
}

// token answers GET /dev/token?buyer=u1 with a JWT. Only local has it.
func token(secret string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		buyer := r.URL.Query().Get("buyer")
		if !seckill.ValidBuyer(buyer) {
			http.Error(w, "buyer: must be 1 to 64 of A-Z, a-z, 0-9 and . _ @ : -", http.StatusBadRequest)
			return
		}
		signed, err := identity.Sign(secret, buyer, demoLength)
		if err != nil {
			http.Error(w, "sign a token: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(w, signed)
	}
}

// cronEvery is how often the sweep is triggered, as on the platforms.
const cronEvery = 10 * time.Second

// cron sends the request that OpenFaaS' cron-connector sends, at once and then
// every cronEvery, until ctx ends.
func cron(ctx context.Context, url string) {
	ticker := time.NewTicker(cronEvery)
	defer ticker.Stop()
	for {
		if err := trigger(ctx, url); err != nil && ctx.Err() == nil {
			slog.Error("cron", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func trigger(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-Topic", "cron-function")
	request.Header.Set("X-Connector", "cron-connector")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	_ = response.Body.Close()
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("sweep answered %d: %s", response.StatusCode, body)
	}
	return err
}
