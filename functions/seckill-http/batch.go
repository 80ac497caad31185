package seckillhttp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/shared/seckill"
)

// batches gathers the claims of a sale that arrive while its last script call
// runs into the next call: no timer, and no delay when nothing runs.
type batches struct {
	config       Config
	reservations Reservations
	publisher    Publisher
	refusals     *refusals

	mu       sync.Mutex
	lanes    map[string]*lane      // one for each sale that has claims waiting or running
	accepted map[string][]*attempt // to be published, of each sale that has a publish running
}

// lane is the queue of one sale.
type lane struct {
	waiting []*attempt
}

// attempt is one claim on its way through a batch.
type attempt struct {
	ctx      context.Context //nolint:containedctx // its deadline outlives the request only inside one batch
	request  seckill.ClaimRequest
	until    time.Time // after which it is not decided any more
	decision seckill.Decision
	decided  time.Time // set if accepted
	err      error
	done     chan struct{}
}

var (
	errQueueFull = fmt.Errorf("too many claims are waiting: %w", seckill.ErrUnavailable)
	errTooLate   = fmt.Errorf("the claim waited too long: %w", seckill.ErrUnavailable)
	errOlder     = fmt.Errorf("redis came back with older data: %w", seckill.ErrUnavailable)
)

func newBatches(config Config, reservations Reservations, publisher Publisher) *batches {
	return &batches{
		config: config, reservations: reservations, publisher: publisher, refusals: newRefusals(config, reservations),
		lanes: make(map[string]*lane), accepted: make(map[string][]*attempt),
	}
}

// claim decides one attempt and publishes it if it was accepted. When ctx ends
// first, or the time that one call and the broker's answer may take, the answer
// is unknown: the claim may still be accepted. That time runs from here, not
// from the call: who had to wait for the batch before does not wait twice.
func (b *batches) claim(ctx context.Context, sale string, request seckill.ClaimRequest) (seckill.Decision, error) {
	if decision, stands := b.refusals.now(sale, request); stands {
		return decision, nil
	}
	a := &attempt{ctx: ctx, request: request, until: time.Now().Add(b.config.DecideTimeout), done: make(chan struct{})}
	if err := b.enqueue(sale, a); err != nil { //nolint:contextcheck // a batch outlives the requests in it
		return seckill.Decision{}, err
	}
	patience := time.NewTimer(b.config.DecideTimeout + b.config.AckTimeout)
	defer patience.Stop()
	select {
	case <-a.done:
		return a.decision, a.err
	case <-patience.C:
		return seckill.Decision{}, errTooLate
	case <-ctx.Done():
		return seckill.Decision{}, fmt.Errorf("claim in sale %s: %w: %w", sale, seckill.ErrUnavailable, ctx.Err())
	}
}

// enqueue adds the attempt to its sale's lane and sets the lane going.
func (b *batches) enqueue(sale string, a *attempt) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.lanes[sale]
	if l == nil {
		l = &lane{}
		b.lanes[sale] = l
		go b.run(sale, l)
	}
	if len(l.waiting) >= b.config.QueueMax {
		return errQueueFull
	}
	l.waiting = append(l.waiting, a)
	return nil
}

// run decides batches of one lane until none is waiting, then ends the lane.
func (b *batches) run(sale string, l *lane) {
	for {
		b.mu.Lock()
		n := min(len(l.waiting), b.config.BatchMax)
		if n == 0 {
			delete(b.lanes, sale)
			b.mu.Unlock()
			return
		}
		batch := l.waiting[:n:n]
		l.waiting = l.waiting[n:]
		b.mu.Unlock()
		b.decide(sale, batch)
	}
}

// decide runs one script call for a batch and answers it. It does not run on a
// request's context: the client may have hung up, the claim counts all the same.
func (b *batches) decide(sale string, batch []*attempt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(batch[0].ctx), b.config.DecideTimeout)
	defer cancel()
	if batch = inTime(batch); len(batch) == 0 {
		return
	}
	if batch = b.refusals.refuse(ctx, sale, batch); len(batch) == 0 {
		return
	}
	requests := make([]seckill.ClaimRequest, len(batch))
	for i, a := range batch {
		requests[i] = a.request
	}
	decisions, err := b.reservations.Claim(ctx, sale, requests)
	if err == nil && len(decisions) != len(batch) {
		err = errors.Join(seckill.ErrUnavailable, fmt.Errorf("sale %s: %d decisions for %d claims", sale, len(decisions), len(batch)))
	}
	if err != nil {
		for _, a := range batch {
			a.err = err
			close(a.done)
		}
		return
	}
	b.refusals.learn(sale, decisions)
	b.answer(sale, batch, decisions)
}

// answer tells attempts their decisions; those that were accepted are told when
// they are published.
func (b *batches) answer(sale string, batch []*attempt, decisions []seckill.Decision) {
	last := decisions[len(decisions)-1]
	older := last.Epoch > 0 && b.refusals.older(sale, last.Epoch, last.Seq)
	var accepted []*attempt
	now := time.Now()
	for i, a := range batch {
		a.decision = decisions[i]
		switch {
		case a.decision.Accepted != nil:
			a.decided = now
			accepted = append(accepted, a)
			continue
		case older && a.decision.Claim.ID == "":
			a.err = errOlder
		}
		close(a.done)
	}
	if len(accepted) > 0 {
		b.send(sale, accepted)
	}
}

// inTime answers the attempts that waited too long, or whose client is gone,
// and returns the others. Nothing was sent for them yet, so nothing happens: a
// Redis that hung is not met by a queue of claims that nobody waits for.
func inTime(batch []*attempt) []*attempt {
	now := time.Now()
	rest := batch[:0]
	for _, a := range batch {
		if a.ctx.Err() == nil && now.Before(a.until) {
			rest = append(rest, a)
			continue
		}
		a.err = errTooLate
		close(a.done)
	}
	return rest
}

// send has accepted claims published: at once, or together with the others
// that are accepted while the sale's last publish runs. A message costs the
// same however many claims it carries.
func (b *batches) send(sale string, accepted []*attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	waiting, running := b.accepted[sale]
	b.accepted[sale] = append(waiting, accepted...)
	if !running {
		go b.sendAll(sale)
	}
}

// sendAll publishes the accepted claims of a sale until none is waiting.
func (b *batches) sendAll(sale string) {
	for {
		b.mu.Lock()
		waiting := b.accepted[sale]
		if len(waiting) == 0 {
			delete(b.accepted, sale)
			b.mu.Unlock()
			return
		}
		b.accepted[sale] = nil
		b.mu.Unlock()
		b.publish(waiting)
	}
}

// publish hands accepted claims to the broker and answers them, once the broker
// has them or Config.AckTimeout is over since the first was accepted. A failure
// is not undone: the broker may have the claim, and the claim log has it.
func (b *batches) publish(accepted []*attempt) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(accepted[0].ctx), b.config.DecideTimeout)
	defer cancel()
	claims := make([]seckill.AcceptedClaim, len(accepted))
	for i, a := range accepted {
		claims[i] = *a.decision.Accepted
	}
	acks := b.publisher.PublishBatch(ctx, claims)
	patience := time.NewTimer(b.config.AckTimeout - time.Since(accepted[0].decided))
	defer patience.Stop()
	patient := true
	for i, a := range accepted {
		if patient && i < len(acks) {
			select {
			case <-acks[i].Done():
			case <-patience.C:
				patient = false
			}
		}
		close(a.done)
	}
}
