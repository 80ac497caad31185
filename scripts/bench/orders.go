package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"seckill/scripts/load/drive"
	"seckill/shared/events"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/servers"
)

const (
	// batchEvents and postsInFlight are how nats-bridge delivers unless told
	// otherwise.
	batchEvents   = 500
	postsInFlight = 4
	// ordersPerSecond sizes the work of a round of the fast sides: they write
	// a number of orders, however long that takes.
	ordersPerSecond = 20_000
)

// claim makes n accepted claims of a sale by the script, without HTTP.
func (s *stage) claim(ctx context.Context, sale string, n int) ([]seckill.AcceptedClaim, error) {
	return s.claimFrom(ctx, sale, 0, n)
}

// claimFrom does so for buyers from this number on.
func (s *stage) claimFrom(ctx context.Context, sale string, from, n int) ([]seckill.AcceptedClaim, error) {
	accepted := make([]seckill.AcceptedClaim, 0, n)
	for len(accepted) < n {
		requests := make([]seckill.ClaimRequest, min(redisstore.BatchMax, n-len(accepted)))
		for i := range requests {
			id, err := uuid.NewV7()
			if err != nil {
				return nil, err
			}
			requests[i] = seckill.ClaimRequest{ID: id.String(), Buyer: "buyer-" + strconv.Itoa(from+len(accepted)+i), Quantity: 1}
		}
		decisions, err := s.reservations.Claim(ctx, sale, requests)
		if err != nil {
			return nil, err
		}
		for _, d := range decisions {
			if d.Accepted == nil {
				return nil, fmt.Errorf("a claim was decided %s", d.Outcome)
			}
			accepted = append(accepted, *d.Accepted)
		}
	}
	return accepted, nil
}

// batches encodes claims as the bodies of deliveries.
func batches(claims []seckill.AcceptedClaim) [][]byte {
	var bodies [][]byte
	for start := 0; start < len(claims); start += batchEvents {
		body := []byte{'['}
		for i, c := range claims[start:min(start+batchEvents, len(claims))] {
			if i > 0 {
				body = append(body, ',')
			}
			body = events.AppendClaim(body, c, "")
		}
		bodies = append(bodies, append(body, ']'))
	}
	return bodies
}

// consumerSide posts accepted claims to order-consumer as the bridge does,
// until each of them is an order and settled.
func (s *stage) consumerSide(p *program) (side, error) {
	client, err := drive.NewClient(p.url, postsInFlight, time.Minute)
	var bodies [][]byte
	var n int
	return side{
		name: "order-consumer",
		parts: map[string]*servers.Process{
			"order-consumer": p.Process, "redis": &s.redis.Process, "mariadb": &s.mysql.Process,
		},
		before: func(ctx context.Context, length time.Duration) error {
			n = int(length.Seconds() * ordersPerSecond)
			sale, err := s.sale(ctx, int64(n))
			if err != nil {
				return err
			}
			claims, err := s.claim(ctx, sale.ID, n)
			bodies = batches(claims)
			return err
		},
		round: func(ctx context.Context, _ time.Duration) (int64, time.Duration, error) {
			began := time.Now()
			err := deliver(ctx, client, bodies, n)
			return int64(n), time.Since(began), err
		},
		after: s.clearOrders,
	}, err
}

// deliver posts all bodies and demands that every event was applied.
func deliver(ctx context.Context, client *drive.Client, bodies [][]byte, n int) error {
	var applied atomic.Int64
	problem := make(chan error, 1)
	work := func(session *drive.Session, i int64) drive.Outcome {
		status, err := session.Do(&drive.Call{
			Method: http.MethodPost, Path: "/", Buyer: drive.Nobody, Body: bodies[i], Type: events.BatchContentType,
		})
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("a batch was answered %d: %.200s", status, session.Body())
		}
		var answer struct{ Results []seckill.EventResult }
		if err == nil {
			err = json.Unmarshal(session.Body(), &answer)
		}
		for _, r := range answer.Results {
			if r.Verdict == seckill.VerdictApplied {
				applied.Add(1)
			} else {
				err = fmt.Errorf("event %s: %s %s", r.ID, r.Verdict, r.Reason)
			}
		}
		if err != nil {
			select {
			case problem <- err:
			default:
			}
		}
		return drive.Outcome{}
	}
	plan := drive.Plan{Count: int64(len(bodies)), Conns: postsInFlight}
	drive.Run(ctx, plan, func() *drive.Session { return client.NewSession(nil) }, drive.NewRecorder("batch"), work)
	select {
	case err := <-problem:
		return err
	default:
	}
	if applied.Load() != int64(n) {
		return fmt.Errorf("%d of %d orders were applied", applied.Load(), n)
	}
	return ctx.Err()
}

// clearOrders empties the tables that grow, so that each round finds them
// alike.
func (s *stage) clearOrders(ctx context.Context) error {
	for _, name := range []string{"orders", "outbox", "holdings"} {
		if err := servers.ExecMySQL(ctx, s.mysql.DSN, "TRUNCATE TABLE "+name); err != nil {
			return err
		}
	}
	return s.clear(ctx)
}

func ordersToOptimistic(ctx context.Context, s *stage) ([]line, error) {
	b, err := s.optimisticSide()
	if err != nil {
		return nil, err
	}
	return s.ordersTo(ctx, ratio{quantity: "orders landed through order-consumer (settled) ÷ optimistic lock", b: b, goal: 100})
}

// rawLoops is as many as order-consumer has writers.
const rawLoops = 2

func ordersToRaw(ctx context.Context, s *stage) ([]line, error) {
	b, err := s.rawSide(rawLoops)
	if err != nil {
		return nil, err
	}
	return s.ordersTo(ctx, ratio{quantity: "orders landed through order-consumer (settled) ÷ raw batch insert", b: b, goal: 0.5})
}

func (s *stage) ordersTo(ctx context.Context, r ratio) ([]line, error) {
	return s.withFunction("order-consumer", func(p *program) (line, error) {
		a, err := s.consumerSide(p)
		if err != nil {
			return line{}, err
		}
		r.unit, r.a = "/s", a
		return s.compare(ctx, r)
	})
}
