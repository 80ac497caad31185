package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"seckill/scripts/load/drive"
	"seckill/shared/audit"
	"seckill/shared/seckill"
	"seckill/shared/servers"
)

// restMax bounds how long the system may take to come to rest.
const restMax = 5 * time.Minute

// withPipeline runs a measurement while everything from a claim to its settled
// order runs.
func (s *stage) withPipeline(measure func(claims *program, m func() meter) (line, error)) ([]line, error) {
	consumer, err := s.function("order-consumer")
	if err != nil {
		return nil, err
	}
	bridge, err := s.function("nats-bridge", "TARGET_URL="+consumer.url)
	if err != nil {
		return nil, err
	}
	claims, err := s.function("seckill-http")
	if err != nil {
		return nil, err
	}
	end, err := start(consumer, bridge, claims)
	if err != nil {
		return nil, err
	}
	defer end()
	l, err := measure(claims, func() meter {
		return startMeter(map[string]*servers.Process{
			"seckill-http": claims.Process, "nats-bridge": bridge.Process, "order-consumer": consumer.Process,
			"redis": &s.redis.Process, "nats": &s.nats.Process, "mariadb": &s.mysql.Process,
		})
	})
	return []line{l}, err
}

// settled is how many claims of the sale were accepted, and how many of them
// are settled.
func (s *stage) settled(ctx context.Context, sale string) (accepted, settled int64, err error) {
	head, err := s.reservations.Head(ctx, sale)
	return head.Seq, head.Seq - head.Reserved, err
}

// rest waits until the sale is at rest and audits it.
func (s *stage) rest(ctx context.Context, sale string) (audit.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, restMax)
	defer cancel()
	for {
		_, settled, err := s.settled(ctx, sale)
		accepted, _, err2 := s.settled(ctx, sale)
		if err := errors.Join(err, err2); err != nil {
			return audit.Report{}, err
		}
		if accepted == settled {
			break
		}
		select {
		case <-ctx.Done():
			return audit.Report{}, fmt.Errorf("%d of %d claims were not settled: %w", accepted-settled, accepted, ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
	report, err := audit.Sale(ctx, s.records, s.reservations, sale)
	if err == nil && (!report.AtRest || !report.Laws.Hold()) {
		err = fmt.Errorf("a law does not hold: %+v", report)
	}
	return report, err
}

// lag is the 50th and 99th percentile of the time from a claim to its order's
// transaction.
func (s *stage) lag(ctx context.Context, sale string) (p50, p99 time.Duration, orders int, err error) {
	var all []time.Duration
	_, err = s.records.Snapshot(ctx, sale, 1000, func(chunk []seckill.Order) error {
		for _, o := range chunk {
			all = append(all, o.CreatedAt.Sub(o.AcceptedAt))
		}
		return nil
	})
	if err != nil || len(all) == 0 {
		return 0, 0, 0, err
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)*99/100], len(all), nil
}

// wholePipeline offers claims at a steady rate, open model, and counts what is
// settled after the first fifth.
func wholePipeline(ctx context.Context, s *stage) ([]line, error) {
	return s.withPipeline(func(p *program, measure func() meter) (line, error) {
		sale, err := s.sale(ctx, seckill.UnitsMax)
		if err != nil {
			return line{}, err
		}
		length := s.options.pipelineFor
		plan := drive.Plan{Open: true, Rate: s.options.pipelineRate, For: length, Conns: s.options.conns}
		m, answers := measure(), make(chan error, 1)
		go func() { answers <- s.claimAll(ctx, p, sale.ID, plan, nil) }()
		rate, err := s.settledRate(ctx, sale.ID, length)
		if err := errors.Join(err, <-answers); err != nil {
			return line{}, err
		}
		began := time.Now()
		if _, err := s.rest(ctx, sale.ID); err != nil {
			return line{}, err
		}
		rest := time.Since(began)
		accepted, _, err := s.settled(ctx, sale.ID)
		if err != nil {
			return line{}, err
		}
		_, costs := m.each(accepted)
		say("processor µs for an order: %s", costs)
		p50, p99, orders, err := s.lag(ctx, sale.ID)
		say("%s orders a second; lag p50 %s p99 %s; at rest %s after", amount(rate), p50, p99, rest.Round(time.Millisecond))
		return line{
			quantity: fmt.Sprintf("whole pipeline, claim to settled order, for %s; the audit holds at the end", length),
			a: fmt.Sprintf("%s orders/s settled of %s claims/s offered (open model); claim to order p50 %s, p99 %s; %s orders, the last %s after the last claim",
				amount(rate), amount(s.options.pipelineRate), ms(p50), ms(p99), amount(float64(orders)), seconds(rest)),
			b: "—", ratio: "—", goal: "≥ 10,000 orders/s", met: yesNo(rate >= 10_000),
		}, errors.Join(err, s.clearOrders(ctx))
	})
}

func ms(d time.Duration) string { return amount(float64(d.Microseconds())/1000) + " ms" }

// settledRate is how many claims are settled in a second between the first
// fifth and the end of that time.
func (s *stage) settledRate(ctx context.Context, sale string, length time.Duration) (float64, error) {
	at := func(after time.Duration) (int64, time.Time, error) {
		timer := time.NewTimer(after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return 0, time.Time{}, ctx.Err()
		}
		_, settled, err := s.settled(ctx, sale)
		return settled, time.Now(), err
	}
	first, from, err := at(length / 5)
	if err != nil {
		return 0, err
	}
	last, to, err := at(length - length/5)
	if err != nil {
		return 0, err
	}
	return float64(last-first) / to.Sub(from).Seconds(), nil
}

// claimAll plays a plan of claims, each from another buyer; lastWon, if not
// nil, becomes when the last of them was accepted.
func (s *stage) claimAll(ctx context.Context, p *program, sale string, plan drive.Plan, lastWon *atomic.Int64) error {
	q, err := s.requests(p)
	if err != nil {
		return err
	}
	buyers := &drive.Buyers{Prefix: "b" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-", Secret: []byte(s.secret), Expires: time.Now().Add(time.Hour)}
	rec := drive.NewRecorder("accepted", "other")
	var unknown atomic.Int64
	drive.Run(ctx, plan, func() *drive.Session { return q.client.NewSession(buyers) }, rec, func(session *drive.Session, n int64) drive.Outcome {
		status, err := session.Do(&drive.Call{Method: http.MethodPost, Path: "/sales/" + sale + "/claims", Buyer: n, Body: oneUnit})
		switch {
		case err == nil && status == http.StatusAccepted:
			if lastWon != nil {
				lastWon.Store(time.Now().UnixNano())
			}
			return drive.Outcome{Kind: kindWanted}
		case err != nil || status != http.StatusConflict:
			unknown.Add(1)
		}
		return drive.Outcome{Kind: kindOther}
	})
	rec.Cut()
	say("claims: %d accepted, p99 %s; %d without a definite answer", rec.Total(kindWanted).TotalCount(),
		ms(time.Duration(rec.Total(kindWanted).ValueAtQuantile(99))*time.Microsecond), unknown.Load())
	if n := unknown.Load(); n > rec.Total(kindWanted).TotalCount()/100 {
		return fmt.Errorf("%d claims had no definite answer", n)
	}
	return ctx.Err()
}

// bigSale sells a sale out as fast as it goes, closed model, and waits for its
// last order to be settled.
func bigSale(ctx context.Context, s *stage) ([]line, error) {
	return s.withPipeline(func(p *program, measure func() meter) (line, error) {
		units := s.options.bigSale
		sale, err := s.sale(ctx, units)
		if err != nil {
			return line{}, err
		}
		began, m := time.Now(), measure()
		var lastWon atomic.Int64
		plan := drive.Plan{Count: units + units/20, Conns: s.options.conns}
		if err := s.claimAll(ctx, p, sale.ID, plan, &lastWon); err != nil {
			return line{}, err
		}
		report, err := s.rest(ctx, sale.ID)
		if err != nil {
			return line{}, err
		}
		if live := report.Orders[seckill.OrderUnpaid]; live != units {
			return line{}, fmt.Errorf("%d of %d units were sold", live, units)
		}
		last := time.Unix(0, lastWon.Load())
		waited := time.Since(last)
		_, costs := m.each(units)
		say("processor µs for an order: %s", costs)
		say("%d units sold in %s, settled %s later", units, last.Sub(began).Round(time.Millisecond), waited.Round(time.Millisecond))
		return line{
			quantity: fmt.Sprintf("last order settled after the last claim, sale of %s units", amount(float64(units))),
			a:        fmt.Sprintf("%s (sold out in %s, %s claims/s)", seconds(waited), seconds(last.Sub(began)), amount(float64(units)/last.Sub(began).Seconds())),
			b:        "—", ratio: "—", goal: "≤ 10 s", met: yesNo(waited <= 10*time.Second),
		}, s.clearOrders(ctx)
	})
}
