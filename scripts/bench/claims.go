package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"seckill/scripts/load/drive"
	"seckill/shared/identity"
	"seckill/shared/seckill"
	"seckill/shared/servers"
)

func measurements() []measurement {
	return []measurement{
		{"claims accepted ÷ bare handler", claimsToBare},
		{"claims batched ÷ one script call each", claimsToSingle},
		{"claims batched ÷ auto-pipelined", claimsToPipelined},
		{"refusals after sold out ÷ bare handler", refusalsToBare},
		{"item detail ÷ bare handler", itemsToBare},
		{"orders ÷ optimistic lock", ordersToOptimistic},
		{"orders ÷ raw batch insert", ordersToRaw},
		{"whole pipeline", wholePipeline},
		{"last order of a big sale", bigSale},
		{"expiry wave", expiryWave},
		{"growth", growth},
		{"start, memory and size", processes},
	}
}

// requests is one way to send requests to a program.
type requests struct {
	stage  *stage
	client *drive.Client
	method string
	path   string
	body   []byte
	nobody bool
	want   int // the status that counts
}

// The kinds of answers that are told apart.
const (
	kindWanted drive.Kind = iota
	kindOther
)

// round sends requests for a time, closed model, every one from another buyer,
// and counts the wanted answers. More than one in a thousand that is another
// makes the round worthless.
func (q requests) round(ctx context.Context, length time.Duration) (int64, time.Duration, error) {
	buyers := &drive.Buyers{
		Prefix: "b" + strconv.FormatInt(time.Now().UnixNano(), 36) + "-", Secret: []byte(q.stage.secret), Expires: time.Now().Add(time.Hour),
	}
	rec := drive.NewRecorder("wanted", "other")
	var odd atomic.Int64
	work := func(s *drive.Session, n int64) drive.Outcome {
		call := drive.Call{Method: q.method, Path: q.path, Buyer: n, Body: q.body}
		if q.nobody {
			call.Buyer = drive.Nobody
		}
		status, err := s.Do(&call)
		if err == nil && status == q.want {
			return drive.Outcome{Kind: kindWanted}
		}
		odd.Store(int64(status))
		return drive.Outcome{Kind: kindOther}
	}
	began := time.Now()
	plan := drive.Plan{For: length, Conns: q.stage.options.conns, Start: began}
	drive.Run(ctx, plan, func() *drive.Session { return q.client.NewSession(buyers) }, rec, work)
	took := time.Since(began)
	rec.Cut()
	done, other := rec.Total(kindWanted).TotalCount(), rec.Total(kindOther).TotalCount()
	if ctx.Err() != nil {
		return 0, 0, ctx.Err()
	}
	if other > done/1000 {
		return 0, 0, fmt.Errorf("%d of %d answers were not %d but for example %d", other, done+other, q.want, odd.Load())
	}
	return done, took, nil
}

// requests prepares requests to a program.
func (s *stage) requests(p *program) (requests, error) {
	client, err := drive.NewClient(p.url, s.options.conns, 10*time.Second)
	return requests{stage: s, client: client}, err
}

var oneUnit = []byte(`{"quantity":1}`)

// claimsSide sends claims to a program, each round in a new sale that does not
// sell out.
func (s *stage) claimsSide(name string, p *program) (side, error) {
	q, err := s.requests(p)
	q.method, q.body, q.want = http.MethodPost, oneUnit, http.StatusAccepted
	return side{
		name: name, parts: map[string]*servers.Process{name: p.Process, "redis": &s.redis.Process, "nats": &s.nats.Process},
		before: func(ctx context.Context, _ time.Duration) error {
			sale, err := s.sale(ctx, seckill.UnitsMax)
			q.path = "/sales/" + sale.ID + "/claims"
			return err
		},
		round: func(ctx context.Context, length time.Duration) (int64, time.Duration, error) {
			return q.round(ctx, length)
		},
		after: s.clear,
	}, err
}

// sampleOf is what a function answers to a claim in this sale.
func (s *stage) sampleOf(ctx context.Context, p *program, sale string) (sample, error) {
	token, err := identity.Sign(s.secret, "sample-"+strconv.FormatInt(time.Now().UnixNano(), 36), time.Hour)
	if err != nil {
		return sample{}, err
	}
	return take(ctx, http.MethodPost, p.url+"/sales/"+sale+"/claims", token, string(oneUnit))
}

// bareSide sends the same requests to a program that answers as the sample
// does.
func (s *stage) bareSide(answer sample, q requests) (side, func(), error) {
	bare, err := s.bare(answer)
	if err != nil {
		return side{}, nil, err
	}
	end, err := start(bare)
	if err != nil {
		return side{}, nil, err
	}
	to, err := s.requests(bare)
	to.method, to.path, to.body, to.want, to.nobody = q.method, q.path, q.body, q.want, q.nobody
	return side{name: "bare net/http", round: to.round, parts: map[string]*servers.Process{"bare": bare.Process}}, end, err
}

// withFunction runs a measurement while a function runs.
func (s *stage) withFunction(name string, measure func(*program) (line, error), env ...string) ([]line, error) {
	p, err := s.function(name, env...)
	if err != nil {
		return nil, err
	}
	end, err := start(p)
	if err != nil {
		return nil, err
	}
	defer end()
	l, err := measure(p)
	return []line{l}, err
}

func claimsToBare(ctx context.Context, s *stage) ([]line, error) {
	return s.withFunction("seckill-http", func(p *program) (line, error) {
		sale, err := s.sale(ctx, 100)
		if err != nil {
			return line{}, err
		}
		answer, err := s.sampleOf(ctx, p, sale.ID)
		if err == nil && answer.Status != http.StatusAccepted {
			err = fmt.Errorf("a claim was answered %d: %s", answer.Status, answer.Body)
		}
		if err != nil {
			return line{}, err
		}
		a, err := s.claimsSide("seckill-http", p)
		if err != nil {
			return line{}, err
		}
		b, end, err := s.bareSide(answer, requests{method: http.MethodPost, path: "/sales/" + sale.ID + "/claims", body: oneUnit, want: http.StatusAccepted})
		if err != nil {
			return line{}, err
		}
		defer end()
		return s.compare(ctx, ratio{quantity: "claims accepted (202, in Redis and JetStream) ÷ bare handler", unit: "/s", a: a, b: b, goal: 0.6})
	})
}

func claimsToSingle(ctx context.Context, s *stage) ([]line, error) {
	return claimsToVariant(ctx, s, "single", "one script call each", ratio{quantity: "claims accepted, batched ÷ one script call per request", goal: 1.5})
}

func claimsToPipelined(ctx context.Context, s *stage) ([]line, error) {
	return claimsToVariant(ctx, s, "pipelined", "one call each, auto-pipelined by go-redis", ratio{quantity: "claims accepted, batched ÷ auto-pipelined script calls"})
}

func claimsToVariant(ctx context.Context, s *stage, variant, name string, r ratio) ([]line, error) {
	return s.withFunction("seckill-http", func(p *program) (line, error) {
		other, err := s.self("/_/ready", "variant", variant)
		if err != nil {
			return line{}, err
		}
		end, err := start(other)
		if err != nil {
			return line{}, err
		}
		defer end()
		a, errA := s.claimsSide("seckill-http", p)
		b, errB := s.claimsSide(name, other)
		if err := errors.Join(errA, errB); err != nil {
			return line{}, err
		}
		r.unit, r.a, r.b = "/s", a, b
		return s.compare(ctx, r)
	})
}

func refusalsToBare(ctx context.Context, s *stage) ([]line, error) {
	return s.withFunction("seckill-http", func(p *program) (line, error) {
		sale, err := s.sale(ctx, 100)
		if err != nil {
			return line{}, err
		}
		defer s.clear(ctx) //nolint:errcheck // the next measurement has another sale
		if _, err := s.claim(ctx, sale.ID, 100); err != nil {
			return line{}, err
		}
		answer, err := s.sampleOf(ctx, p, sale.ID)
		if err == nil && answer.Status != http.StatusConflict {
			err = fmt.Errorf("a claim after sold out was answered %d: %s", answer.Status, answer.Body)
		}
		if err != nil {
			return line{}, err
		}
		q, err := s.requests(p)
		if err != nil {
			return line{}, err
		}
		q.method, q.path, q.body, q.want = http.MethodPost, "/sales/"+sale.ID+"/claims", oneUnit, http.StatusConflict
		b, end, err := s.bareSide(answer, q)
		if err != nil {
			return line{}, err
		}
		defer end()
		a := side{name: "seckill-http", round: q.round, parts: map[string]*servers.Process{"seckill-http": p.Process, "redis": &s.redis.Process}}
		return s.compare(ctx, ratio{quantity: "refusals after sold out (409) ÷ bare handler", unit: "/s", a: a, b: b, goal: 0.85})
	})
}

func itemsToBare(ctx context.Context, s *stage) ([]line, error) {
	return s.withFunction("item-detail", func(p *program) (line, error) {
		sale, err := s.sale(ctx, 100)
		if err != nil {
			return line{}, err
		}
		answer, err := take(ctx, http.MethodGet, p.url+"/items/"+sale.SKU, "", "")
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("an item was answered %d: %s", answer.Status, answer.Body)
		}
		if err != nil {
			return line{}, err
		}
		q, err := s.requests(p)
		if err != nil {
			return line{}, err
		}
		q.method, q.path, q.want, q.nobody = http.MethodGet, "/items/"+sale.SKU, http.StatusOK, true
		b, end, err := s.bareSide(answer, q)
		if err != nil {
			return line{}, err
		}
		defer end()
		a := side{name: "item-detail", round: q.round, parts: map[string]*servers.Process{"item-detail": p.Process, "redis": &s.redis.Process}}
		return s.compare(ctx, ratio{quantity: "item detail from the local cache ÷ bare handler", unit: "/s", a: a, b: b, goal: 0.85})
	})
}
