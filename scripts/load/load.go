package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"seckill/scripts/load/drive"
)

// load is one run of a scenario.
type load struct {
	ctx      context.Context //nolint:containedctx // the run's; it ends with it
	options  options
	scenario scenario
	client   *drive.Client
	buyers   *drive.Buyers
	recorder *drive.Recorder
	winners  *winners
	stores   *stores // nil if the run may not look into them

	sale      string
	opens     time.Time
	claimPath string
	itemPath  string
	timeline  *timeline
}

// result is what a run found.
type result struct {
	options  options
	scenario scenario
	sale     string
	at       time.Time
	facts    []fact
	kinds    []kindTotal
	faults   map[string]int64
	took     time.Duration // from the first arrival to the last answer
	timeline *timeline
	seen     lags   // from 202 to "ordered", as buyers saw it
	placed   placed // what MySQL says of the orders
	units    units
	rest     time.Duration // from the last answer to rest
	laws     []law
}

func (r result) hold() bool {
	for _, l := range r.laws {
		if l.broken {
			return false
		}
	}
	return true
}

// tokenLife must outlast a run.
const tokenLife = 6 * time.Hour

func newLoad(ctx context.Context, o options, env settings) (*load, error) {
	s, err := scenarioOf(o.scenario)
	if err != nil {
		return nil, err
	}
	client, err := drive.NewClient(o.url, o.conns+watchers, o.timeout)
	if err != nil {
		return nil, err
	}
	run := strconv.FormatInt(time.Now().UnixMilli(), 36)
	l := &load{
		ctx: ctx, options: o, scenario: s, client: client, winners: newWinners(),
		recorder: drive.NewRecorder(kindNames()...),
		buyers:   &drive.Buyers{Prefix: "b" + run + "-", Secret: []byte(env.Secret), Expires: time.Now().Add(tokenLife)},
	}
	if env.MySQLDSN != "" && len(env.RedisAddrs) > 0 {
		if l.stores, err = openStores(env); err != nil {
			return nil, err
		}
	}
	if err := l.readySale(ctx, "load-"+run); err != nil {
		l.close()
		return nil, err
	}
	if env.Secret == "" && o.scenario != "items" {
		if err := l.fetchTokens(ctx); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *load) close() {
	l.client.Close()
	if l.stores != nil {
		l.stores.close()
	}
}

// session is what each connection of a run uses.
func (l *load) session() *drive.Session { return l.client.NewSession(l.buyers) }

// readySale finds the sale that was named, or makes one.
func (l *load) readySale(ctx context.Context, id string) error {
	sku := l.options.sku
	l.sale = l.options.sale
	switch {
	case l.sale == "" && l.stores == nil:
		return errors.New("-sale names an existing sale; with REDIS_ADDRS and MYSQL_DSN the run makes one")
	case l.sale == "":
		l.sale, sku = id, id
		sale, err := l.stores.create(ctx, l.options, id)
		if err != nil {
			return err
		}
		l.opens = sale.OpensAt
	default:
		opens, err := l.opensAt(sku)
		if err != nil {
			return err
		}
		l.opens = opens
	}
	l.claimPath, l.itemPath = "/sales/"+l.sale+"/claims", "/items/"+sku
	return nil
}

// tokensMax bounds the tokens that are fetched, at about 200 bytes each.
const tokensMax = 200_000

// fetchTokens gets the buyers' tokens from the system, ahead of the run.
func (l *load) fetchTokens(ctx context.Context) error {
	n := l.options.buyers
	if l.scenario.before != nil {
		n += l.options.units
	}
	if n > tokensMax {
		if l.scenario.once {
			return fmt.Errorf("%d buyers need AUTH_HMAC_SECRET; at most %d tokens are fetched", n, tokensMax)
		}
		n = tokensMax / 10
		l.options.buyers = n
	}
	fmt.Printf("fetching %d tokens from /dev/token\n", n)
	tokens := make([]string, n)
	errs := make(chan error, 1)
	work := func(s *drive.Session, i int64) drive.Outcome {
		status, err := s.Do(&drive.Call{Method: "GET", Path: "/dev/token?buyer=" + l.buyers.Name(i), Buyer: drive.Nobody})
		if err == nil && status != 200 {
			err = fmt.Errorf("/dev/token answered %d; give AUTH_HMAC_SECRET", status)
		}
		if err != nil {
			select {
			case errs <- err:
			default:
			}
		}
		tokens[i] = string(s.Body())
		return drive.Outcome{}
	}
	drive.Run(ctx, drive.Plan{Count: n, Conns: l.options.conns}, l.session, drive.NewRecorder("token"), work)
	select {
	case err := <-errs:
		return err
	default:
		l.buyers.Tokens = tokens
		return ctx.Err()
	}
}

// play runs the scenario and looks at what it left.
func (l *load) play(ctx context.Context) (result, error) {
	if err := l.awaitOpening(ctx); err != nil {
		return result{}, err
	}
	plan := l.options.plan(l.scenario)
	plan.Start = l.opens
	if l.scenario.before != nil || plan.Start.Before(time.Now()) {
		plan.Start = time.Now()
	}
	seen := l.watch(ctx)
	l.timeline = startTimeline(ctx, l, plan.Start)
	drive.Run(ctx, plan, l.session, l.recorder, l.scenario.work(l))
	took := time.Since(plan.Start)
	l.timeline.answered()
	fmt.Printf("all answered after %s; waiting for the system to come to rest\n", took.Round(time.Millisecond))
	r := result{
		options: l.options, scenario: l.scenario, sale: l.sale, at: plan.Start, took: took,
		faults: l.recorder.Faults(), timeline: l.timeline, facts: l.facts(ctx),
	}
	err := l.judge(ctx, &r)
	l.timeline.stop()
	r.seen = seen()
	for kind := range kinds {
		if total := l.recorder.Total(kind); total.TotalCount() > 0 {
			r.kinds = append(r.kinds, kindTotal{l.recorder.Names()[kind], total})
		}
	}
	return r, err
}

// awaitOpening waits for the opening of a scenario that begins before its
// arrivals do; those of the others wait for it themselves.
func (l *load) awaitOpening(ctx context.Context) error {
	if l.scenario.before == nil {
		return nil
	}
	timer := time.NewTimer(time.Until(l.opens))
	defer timer.Stop()
	select {
	case <-timer.C:
		fmt.Println("selling out first")
		return l.scenario.before(l)
	case <-ctx.Done():
		return ctx.Err()
	}
}
