package natsbridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"
)

// Ticker triggers the sweep of expiry-cron, so that it may sleep while there is
// nothing to watch: a trigger of the platform's own, which knows nothing, keeps
// a function awake for ever. The bridge is awake anyway, and claims pass it.
//
// It posts every Config.TickEvery. When the sweep answers that nothing needs
// doing for a while, the next post waits that long, or until Wake. Two tickers
// are as good as one: any number of sweeps may run.
type Ticker struct {
	config Config
	client *http.Client
	woken  chan struct{}
}

// NewTicker returns a ticker that does nothing until Run.
func NewTicker(config Config) *Ticker {
	return &Ticker{config: config, client: newClient(config), woken: make(chan struct{}, 1)}
}

// Wake ends a rest: there may be something to watch. It never blocks.
func (t *Ticker) Wake() {
	select {
	case t.woken <- struct{}{}:
	default: // it is woken already
	}
}

// Watch returns the source as it is; whatever it delivers wakes the ticker.
func (t *Ticker) Watch(source Source) Source { return watched{source, t} }

type watched struct {
	Source
	ticker *Ticker
}

// Fetch implements Source.
func (w watched) Fetch(ctx context.Context, sizeMax int, wait time.Duration) ([]Delivery, error) {
	found, err := w.Source.Fetch(ctx, sizeMax, wait)
	if len(found) > 0 {
		w.ticker.Wake()
	}
	return found, err
}

// Run ticks until ctx ends; without Config.CronURL it returns at once.
func (t *Ticker) Run(ctx context.Context) {
	if t.config.CronURL == "" {
		return
	}
	for {
		rest, err := t.tick(ctx)
		if err != nil && ctx.Err() == nil {
			slog.Warn("the sweep cannot be triggered", "error", err)
		}
		pause := time.NewTimer(t.config.TickEvery)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		// What happened during the pause is a reason to look at once.
		t.sleep(ctx, rest-t.config.TickEvery)
	}
}

// sleep waits for a span, for Wake or for the end of ctx.
func (t *Ticker) sleep(ctx context.Context, span time.Duration) {
	if span <= 0 {
		return
	}
	timer := time.NewTimer(min(span, restMax))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.woken:
	case <-ctx.Done():
	}
}

// restMax bounds a rest, whatever the sweep says.
const restMax = time.Hour

// tick triggers one sweep and returns how long it says none is needed.
func (t *Ticker) tick(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, t.config.PostTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.config.CronURL, http.NoBody)
	if err != nil {
		return 0, fmt.Errorf("trigger %s: %w", t.config.CronURL, err)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("trigger %s: %w", t.config.CronURL, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read as far as it matters
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMax))
	if err != nil {
		return 0, fmt.Errorf("trigger %s: %w", t.config.CronURL, err)
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("trigger %s: %s", t.config.CronURL, resp.Status)
	}
	var report struct {
		RestMS int64 `json:"rest_ms"`
	}
	if err := json.Unmarshal(body, &report); err != nil {
		return 0, fmt.Errorf("trigger %s: %w", t.config.CronURL, err)
	}
	return time.Duration(min(report.RestMS, restMax.Milliseconds())) * time.Millisecond, nil
}
