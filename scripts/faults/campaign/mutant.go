package campaign

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"seckill/scripts/faults/proxy"
	"seckill/scripts/faults/stage"
	"seckill/shared/seckill"
)

var errNotAccepted = errors.New("a claim was not accepted")

// Scenarios are one for each mutant.
func Scenarios() []Scenario {
	return []Scenario{
		{
			Name: "settle before COMMIT", Law: "nothing lost", Functions: []string{"order-consumer"}, units: 2, limit: 1, play: killedBeforeCommit,
			Mutants: []stage.Mutant{{
				File: "functions/order-consumer/queue.go",
				Old:  "	placements, err := q.orders.PlaceOrders(ctx, claims)\n",
				New: `	presumed := make([]seckill.Placement, len(claims))
	for i, c := range claims {
		presumed[i].Order = seckill.Order{ID: c.Claim, Sale: c.Sale, Buyer: c.Buyer, Quantity: c.Quantity, Status: seckill.OrderUnpaid, PayBy: c.AcceptedAt.Add(c.PayWindow())}
	}
	q.settle(ctx, claims, presumed, make([]outcome, len(claims)))
	placements, err := q.orders.PlaceOrders(ctx, claims)
`,
			}},
		},
		{
			Name: "restock without the id check", Law: "every unit sellable", Functions: []string{"order-http", "expiry-cron"}, units: 3, limit: 1, play: restockTwice,
			Mutants: []stage.Mutant{{
				File: "lua/restock.lua",
				Old:  "  reply[i] = settle_one(",
				New:  "  b.records[id] = 'ordered|' .. ARGV[3 * i - 1] .. '|' .. ARGV[3 * i] .. '|'\n  reply[i] = settle_one(",
			}},
		},
		{
			Name: "restock after a publish error", Law: "nothing lost", Functions: []string{"seckill-http"}, units: 2, limit: 1, play: brokerAway,
			Mutants: []stage.Mutant{{
				File: "functions/seckill-http/handler.go",
				Old:  "	Peek(ctx context.Context, sale string) (seckill.SalePeek, error)\n",
				New: "	Peek(ctx context.Context, sale string) (seckill.SalePeek, error)\n" +
					"	Restock(ctx context.Context, sale string, returns []seckill.Return) ([]seckill.Settled, error)\n",
			}, {
				File: "functions/seckill-http/batch.go",
				Old:  "			case <-acks[i].Done():\n",
				New: `			case <-acks[i].Done():
				if c := *a.decision.Accepted; acks[i].Err() != nil {
					_, _ = b.reservations.Restock(ctx, c.Sale, []seckill.Return{{Claim: c.Claim, Buyer: c.Buyer, Quantity: c.Quantity}})
				}
`,
			}},
		},
		{
			Name: "no fence after Redis was lost", Law: "every unit sellable", Functions: []string{"expiry-cron"}, units: 3, limit: 1, play: lostInFlight,
			Mutants: []stage.Mutant{{
				File: "shared/rebuild/rebuild.go",
				Old:  "		return b.drain(ctx, sale, head)\n",
				New:  "		return b.build(ctx, sale, head)\n",
			}},
		},
		{
			Name: "no unique key for the limit", Law: "limit", Schema: true, units: 3, limit: 1, play: boughtTwice,
			Mutants: []stage.Mutant{{
				File: "shared/mysqlstore/migrations/0001_schema.sql",
				Old:  "    UNIQUE KEY orders_live (",
				New:  "    KEY orders_live (",
			}},
		},
	}
}

// killedBeforeCommit: the consumer dies before its COMMIT, and the buyer looks.
func killedBeforeCommit(ctx context.Context, s *scene) error {
	killed := make(chan bool, 1)
	go func() {
		killed <- s.points.kill(ctx, Point{"order-consumer", "COMMIT UPDATE stock", proxy.Before}, pointMax)
	}()
	// A claim that comes before the point is armed leads to it all the same.
	accepted, err := s.claims(ctx, "b1")
	if err == nil && len(accepted) != 1 {
		err = errNotAccepted
	}
	if err != nil {
		return err
	}
	if !<-killed {
		return errNotReached
	}
	// It comes back, and cannot write the order before the buyer has looked.
	way := s.stage.Functions["order-consumer"].MySQL
	way.Set(proxy.Trouble{Refuse: true})
	defer way.Heal()
	b, err := s.buyer("b1")
	if err != nil {
		return err
	}
	b.status(ctx, accepted[0].claim, 0)
	way.Heal()
	return s.become(ctx, accepted[0], seckill.ClaimOrdered)
}

// restockTwice: the reply to a restock is lost, so that the client asks again;
// then two buyers come for the one unit.
func restockTwice(ctx context.Context, s *scene) error {
	accepted, err := s.ordered(ctx, "b1", "b2", "b3")
	if err != nil {
		return err
	}
	defer s.stage.HoldSweeps()()
	lost := make(chan int, 1)
	go func() { lost <- s.points.sever(ctx, Point{"order-http", "restock", proxy.After}, 1, pointMax) }()
	b, err := s.buyer(accepted[0].buyer)
	if err != nil {
		return err
	}
	pause(ctx, 100*time.Millisecond) // so that the point is armed
	b.cancel(ctx, accepted[0].claim)
	if <-lost != 1 {
		return errNotReached
	}
	again, err := s.claims(ctx, "b4", "b5")
	for _, a := range again {
		if err == nil {
			err = s.over(ctx, a)
		}
	}
	return err
}

// brokerAway: nothing can be published while a buyer claims.
func brokerAway(ctx context.Context, s *scene) error {
	way := s.stage.Functions["seckill-http"].NATS
	way.Set(proxy.Trouble{Refuse: true})
	way.Reset()
	accepted, err := s.claims(ctx, "b1")
	way.Heal()
	if err == nil && len(accepted) != 1 {
		err = errNotAccepted
	}
	return err
}

// lostInFlight: Redis loses everything while the consumer hangs, with all units
// claimed and no order written. Then others come.
func lostInFlight(ctx context.Context, s *scene) error {
	consumer := s.stage.Functions["order-consumer"]
	consumer.Pause()
	defer consumer.Resume()
	first, err := s.claims(ctx, "b1", "b2", "b3")
	if err == nil && len(first) != 3 {
		err = errNotAccepted
	}
	if err != nil {
		return err
	}
	s.offer.lossy = true
	if err := s.stage.Admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	late := make(chan error, 1)
	go func() {
		_, err := s.claims(ctx, "b4", "b5", "b6")
		late <- err
	}()
	pause(ctx, 3*sweepEvery)
	consumer.Resume()
	return <-late
}

// boughtTwice: Redis comes back without the order of a buyer, who claims again.
func boughtTwice(ctx context.Context, s *scene) error {
	defer s.stage.HoldSweeps()()
	copied, err := copyRedis(ctx, s.stage)
	if err != nil {
		return err
	}
	if _, err := s.ordered(ctx, "b1"); err != nil {
		return err
	}
	// Whatever is delivered again later would show the older Redis its age.
	if err := poll(ctx, 20*time.Second, func() error { return s.queueAtRest(ctx) }); err != nil {
		return err
	}
	s.offer.aged, s.offer.lossy = true, true
	s.offer.distrusted = []span{{time.Now(), forever}}
	if err := copied.restore(); err != nil {
		return err
	}
	b, err := s.buyer("b1")
	if err != nil {
		return err
	}
	a := b.claim(ctx, "another-key", 1)
	if a.code != http.StatusAccepted {
		return fmt.Errorf("the older Redis answered %d %s", a.code, a.problem)
	}
	return s.over(ctx, a)
}
