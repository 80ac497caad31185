package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/scripts/faults/stage"
	"seckill/shared/audit"
	"seckill/shared/seckill"
	"seckill/shared/servers"
)

// How long the system may take to be right again, with no hand on it.
const (
	restMax     = 60 * time.Second
	restKillMax = 120 * time.Second // after a kill
)

// healing is how long the system may take now.
func (c *campaign) healing() time.Duration {
	if c.killed {
		return restKillMax
	}
	return restMax
}

// atRest waits until everything is settled and in its place, and returns what
// was not in time.
func (c *campaign) atRest(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for _, f := range c.stage.Functions {
		f.Back()
	}
	return servers.Poll(ctx, func() error {
		for _, name := range stage.Names() {
			if err := c.stage.Functions[name].Ready(ctx); err != nil {
				return err
			}
		}
		for _, o := range c.offers {
			if err := c.saleAtRest(ctx, o); err != nil {
				return fmt.Errorf("%s: %w", o.sale.ID, err)
			}
		}
		return c.queueAtRest(ctx)
	})
}

// lookAgainFor is how long what is found may take to be put right: orders that
// fall due while a sale is judged are expired in MySQL a moment before Redis
// knows. What was wrong for a buyer stays in the history, however long it takes.
const lookAgainFor = 10 * time.Second

// look judges a sale; again, as long as something is wrong.
func (c *campaign) look(ctx context.Context, o *offer) (*record, []Violation, error) {
	for until := time.Now().Add(lookAgainFor); ; pause(ctx, time.Second) {
		r, err := c.gather(ctx, o)
		if err != nil {
			return nil, nil, err
		}
		if found := r.judge(); len(found) == 0 || time.Now().After(until) {
			return r, found, nil
		}
	}
}

func (c *campaign) saleAtRest(ctx context.Context, o *offer) error {
	report, err := audit.Sale(ctx, c.stage.Records, c.stage.Reservations, o.sale.ID)
	if err != nil {
		return err
	}
	if !report.AtRest || report.Stock == nil || !report.Laws.Hold() || *report.Stock != report.Available {
		return fmt.Errorf("the audit says %+v", report)
	}
	var due, left int
	err = c.stage.DB.QueryRowContext(ctx, `SELECT
		(SELECT COUNT(*) FROM orders WHERE sale = ? AND status = 'unpaid' AND pay_by < UTC_TIMESTAMP(3)),
		(SELECT COUNT(*) FROM outbox WHERE sale = ?)`, o.sale.ID, o.sale.ID).Scan(&due, &left)
	if err == nil && due+left > 0 {
		err = fmt.Errorf("%d orders are due, %d outbox rows are left", due, left)
	}
	return err
}

func (c *campaign) queueAtRest(ctx context.Context) error {
	waiting, _, err := c.stage.Queue.Waiting(ctx)
	if err == nil && waiting > 0 {
		err = fmt.Errorf("%d claims wait in CLAIMS", waiting)
	}
	if err != nil {
		return err
	}
	parked, err := c.stage.Queue.Dead(ctx, 1)
	if err == nil && len(parked) > 0 {
		err = fmt.Errorf("a message is parked: %s", parked[0].Reason)
	}
	return err
}

// calm waits until no claim that was accepted before since is unsettled and
// every sale is open: then whatever one store loses the other one has. Before
// that a second loss is one more than the system promises to survive.
func (c *campaign) calm(ctx context.Context, since time.Time) error {
	return poll(ctx, c.healing(), func() error {
		for _, o := range c.offers {
			head, err := c.stage.Reservations.Head(ctx, o.sale.ID)
			if err != nil {
				return err
			}
			if !head.Loaded || head.Fence != seckill.FenceNone || !head.StockOK {
				return fmt.Errorf("%s is not open", o.sale.ID)
			}
			claims, _, err := c.stage.Reservations.Unsettled(ctx, o.sale.ID, "", time.Since(since), 1)
			if err != nil && !errors.Is(err, seckill.ErrLost) {
				return err
			}
			if len(claims) > 0 || err != nil {
				return fmt.Errorf("%s has an unsettled claim", o.sale.ID)
			}
		}
		return nil
	})
}

// gather reads all that a sale is judged by.
func (c *campaign) gather(ctx context.Context, o *offer) (*record, error) {
	id := o.sale.ID
	r := &record{
		offer: o, answers: c.shop.history.of(id), told: c.shop.history.told(id), results: map[string]answer{}, returned: c.points.returnedAt,
	}
	var err error
	if r.orders, err = readOrders(ctx, c.stage.DB, id); err != nil {
		return nil, err
	}
	if r.payments, err = readPayments(ctx, c.stage.DB, id); err != nil {
		return nil, err
	}
	if r.notes, err = readNotes(ctx, c.stage.DB, id); err != nil {
		return nil, err
	}
	sale, err := c.stage.Records.Sale(ctx, id)
	if err != nil {
		return nil, err
	}
	r.epoch = sale.Epoch
	for _, told := range r.told {
		if err := c.lastStatus(ctx, r, told); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// lastStatus asks for a claim's status as its buyer. An order that was due just
// now is read again: what counts is that both agree in the end.
func (c *campaign) lastStatus(ctx context.Context, r *record, told answer) error {
	b, err := c.shop.buyer(r.offer.sale, told.buyer, 0, nil)
	if err != nil {
		return err
	}
	_ = poll(ctx, 3*time.Second, func() error { // judged by what was read last
		got := b.status(ctx, told.claim, 0)
		r.results[told.claim] = got
		o, ok := r.orders[told.claim]
		if !ok || string(o.Status.ClaimStatus()) == got.state {
			return nil
		}
		if r.orders, err = readOrders(ctx, c.stage.DB, r.offer.sale.ID); err != nil {
			return err
		}
		return errors.New("the status differs")
	})
	return err
}

// poll checks until it is good, for a time.
func poll(ctx context.Context, within time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return servers.Poll(ctx, check)
}
