package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"seckill/scripts/load/drive"
	"seckill/shared/seckill"
)

const (
	expiryMax = 20 * time.Second
	lockMax   = 100 * time.Millisecond
	// meanwhileRate is how many claims a second go on in another sale.
	meanwhileRate = 500
	probeEvery    = 2 * time.Millisecond
	sweepMax      = 2 * time.Minute
)

// expiryWave has many orders of one sale fall due at once and measures how long
// the sweep takes until each is expired and its unit in stock again, how long
// the sale's stock row is locked meanwhile, and how claims in another sale fare.
func expiryWave(ctx context.Context, s *stage) ([]line, error) {
	return s.withPipeline(func(p *program, _ func() meter) (line, error) {
		cron, err := s.function("expiry-cron")
		if err != nil {
			return line{}, err
		}
		end, err := start(cron)
		if err != nil {
			return line{}, err
		}
		defer end()
		due, err := s.dueOrders(ctx, s.options.due)
		if err != nil {
			return line{}, err
		}
		other, err := s.sale(ctx, seckill.UnitsMax)
		if err != nil {
			return line{}, err
		}
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		locked, claimed := make(chan probed, 1), make(chan struct{})
		go func() { locked <- s.probeStock(ctx, due) }()
		go func() {
			defer close(claimed)
			// It ends with ctx, and says how the claims fared.
			_ = s.claimAll(ctx, p, other.ID, drive.Plan{Open: true, Rate: meanwhileRate, For: sweepMax, Conns: 16}, nil)
		}()
		took, err := s.sweep(ctx, cron.url, due)
		stop()
		longest := <-locked
		<-claimed
		if err := errors.Join(err, longest.err); err != nil {
			return line{}, err
		}
		say("%s due orders expired and in stock again after %s; the stock row was waited for %s at most", amount(float64(s.options.due)), seconds(took), ms(longest.wait))
		return line{
			quantity: fmt.Sprintf("%s due orders expired and back in stock, %d claims/s going on", amount(float64(s.options.due)), meanwhileRate),
			a:        fmt.Sprintf("%s; the sale's stock row was waited for %s at most", seconds(took), ms(longest.wait)),
			b:        "—", ratio: "—", goal: "≤ 20 s, ≤ 100 ms", met: yesNo(took <= expiryMax && longest.wait <= lockMax),
		}, s.clearOrders(context.WithoutCancel(ctx))
	})
}

// dueOrders makes a sale whose orders are all due.
func (s *stage) dueOrders(ctx context.Context, n int64) (string, error) {
	sale, err := s.saleWith(ctx, n, seckill.PayWindowMin)
	if err != nil {
		return "", err
	}
	for from := 0; from < int(n); from += 500 {
		claims, err := s.claimFrom(ctx, sale.ID, from, min(500, int(n)-from))
		if err != nil {
			return "", err
		}
		if err := s.order(ctx, claims); err != nil {
			return "", err
		}
	}
	select {
	case <-time.After(seckill.PayWindowMin):
		return sale.ID, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// sweep triggers expiry-cron until all units of the sale are in stock again,
// and returns when they were: a sweep goes on with other work after that.
func (s *stage) sweep(ctx context.Context, url, sale string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepMax)
	defer cancel()
	began := time.Now()
	swept := make(chan error, 1)
	go func() {
		for {
			if err := trigger(ctx, url); err != nil {
				swept <- err
				return
			}
		}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-swept:
			return 0, err
		case <-tick.C:
		}
		head, err := s.reservations.Head(ctx, sale)
		if err != nil {
			return 0, err
		}
		if head.Stock == head.Opened {
			return time.Since(began), nil
		}
	}
}

// trigger runs one sweep.
func trigger(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	var report struct{ Errors []string }
	err = json.NewDecoder(response.Body).Decode(&report)
	if err == nil && len(report.Errors) > 0 {
		err = errors.New(strings.Join(report.Errors, "; "))
	}
	if err != nil {
		return fmt.Errorf("a sweep failed: %w", err)
	}
	return nil
}

// probed is what probeStock found.
type probed struct {
	wait time.Duration // the longest
	err  error
}

// probeStock touches the sale's stock row again and again until ctx ends.
func (s *stage) probeStock(ctx context.Context, sale string) (p probed) {
	db, err := s.openSQL(1)
	if err != nil {
		return probed{err: err}
	}
	defer db.Close() //nolint:errcheck // what it did is done
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return p
		case <-tick.C:
		}
		began := time.Now()
		_, err := db.ExecContext(ctx, "UPDATE stock SET version = version + 1 WHERE sale = ?", sale)
		if ctx.Err() != nil {
			return p
		}
		if err != nil {
			return probed{err: err}
		}
		p.wait = max(p.wait, time.Since(began))
	}
}
