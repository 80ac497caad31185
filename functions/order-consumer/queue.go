package orderconsumer

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"seckill/shared/seckill"
)

// outcome is what became of one claim.
type outcome struct {
	verdict seckill.Verdict
	reason  string
}

// queue gathers the claims of concurrent deliveries, so that a platform that
// sends one event in a request gets one transaction for many, too: what
// arrives while a transaction runs goes into the next one.
type queue struct {
	config       Config
	orders       Orders
	reservations Reservations

	mu      sync.Mutex
	waiting []*delivery
	size    int // claims in waiting
	writers int // running now
}

// delivery is the claims of one request.
type delivery struct {
	ctx      context.Context //nolint:containedctx // carries the trace into the batch; its end does not stop the batch
	claims   []seckill.AcceptedClaim
	outcomes []outcome
	done     chan struct{}
}

func newQueue(config Config, orders Orders, reservations Reservations) *queue {
	return &queue{config: config, orders: orders, reservations: reservations}
}

// place returns an outcome for each claim, in order. When ctx ends first the
// outcome is unknown and so "retry".
func (q *queue) place(ctx context.Context, claims []seckill.AcceptedClaim) []outcome {
	d := &delivery{ctx: ctx, claims: claims, done: make(chan struct{})}
	if !q.join(d) { //nolint:contextcheck // a batch outlives the requests in it
		return all(len(claims), outcome{seckill.VerdictRetry, "too many claims are waiting"})
	}
	select {
	case <-d.done:
		return d.outcomes
	case <-ctx.Done():
		return all(len(claims), outcome{seckill.VerdictRetry, "the request ended first"})
	}
}

func all(n int, o outcome) []outcome {
	out := make([]outcome, n)
	for i := range out {
		out[i] = o
	}
	return out
}

// join lets a delivery wait unless too many claims do. One that is larger than
// the queue alone may wait when nobody else does: it cannot come any smaller.
func (q *queue) join(d *delivery) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.size > 0 && q.size+len(d.claims) > q.config.QueueMax {
		return false
	}
	q.waiting = append(q.waiting, d)
	q.size += len(d.claims)
	if q.writers < q.config.Writers {
		q.writers++
		go q.write()
	}
	return true
}

// next takes whole deliveries, at least one, up to the size of a batch.
func (q *queue) next() []*delivery {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.waiting) && (n == 0 || size+len(q.waiting[n].claims) <= q.config.BatchMax) {
		size += len(q.waiting[n].claims)
		n++
	}
	batch := q.waiting[:n:n]
	q.waiting, q.size = q.waiting[n:], q.size-size
	if n == 0 {
		q.writers--
	}
	return batch
}

// write runs transactions until nothing waits.
func (q *queue) write() {
	for {
		batch := q.next()
		if len(batch) == 0 {
			return
		}
		q.apply(batch)
	}
}

// apply writes the claims of a batch and answers its deliveries.
func (q *queue) apply(batch []*delivery) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(batch[0].ctx), q.config.Timeout)
	defer cancel()
	var claims []seckill.AcceptedClaim
	for _, d := range batch {
		claims = append(claims, d.claims...)
	}
	outcomes := make([]outcome, 0, len(claims))
	for start := 0; start < len(claims); start += q.config.BatchMax {
		outcomes = append(outcomes, q.transact(ctx, claims[start:min(start+q.config.BatchMax, len(claims))])...)
	}
	for _, d := range batch {
		d.outcomes, outcomes = outcomes[:len(d.claims)], outcomes[len(d.claims):]
		close(d.done)
	}
}

// transact writes orders and then settles them. Only a settled claim has a
// final verdict: whatever fails before that is delivered again, and finds
// what was done.
//
// Claims of several sales share a transaction, but not each other's trouble:
// when it fails within a part of the time there is, each sale is tried alone.
func (q *queue) transact(ctx context.Context, claims []seckill.AcceptedClaim) []outcome {
	bySale := group(claims, func(c seckill.AcceptedClaim) string { return c.Sale })
	if len(bySale) == 1 {
		return q.transactTogether(ctx, claims)
	}
	together, cancel := context.WithTimeout(ctx, q.config.Timeout/4)
	outcomes := q.transactTogether(together, claims)
	cancel()
	if !failed(outcomes) {
		return outcomes
	}
	for _, at := range bySale {
		part := make([]seckill.AcceptedClaim, len(at))
		for k, i := range at {
			part[k] = claims[i]
		}
		alone, cancel := context.WithTimeout(ctx, q.config.Timeout/2)
		for k, o := range q.transactTogether(alone, part) {
			outcomes[at[k]] = o
		}
		cancel()
	}
	return outcomes
}

// failed reports whether nothing is known to be written.
func failed(outcomes []outcome) bool {
	return !slices.ContainsFunc(outcomes, func(o outcome) bool { return o.verdict != seckill.VerdictRetry })
}

// group returns the positions of the items of each key.
func group[T any](items []T, key func(T) string) map[string][]int {
	groups := make(map[string][]int)
	for i, item := range items {
		groups[key(item)] = append(groups[key(item)], i)
	}
	return groups
}

func (q *queue) transactTogether(ctx context.Context, claims []seckill.AcceptedClaim) []outcome {
	placements, err := q.orders.PlaceOrders(ctx, claims)
	if err == nil && len(placements) != len(claims) {
		err = fmt.Errorf("%d placements of %d claims", len(placements), len(claims))
	}
	if err != nil {
		return all(len(claims), outcome{seckill.VerdictRetry, err.Error()})
	}
	outcomes := make([]outcome, len(claims))
	for i, p := range placements {
		outcomes[i] = verdict(p)
	}
	q.settle(ctx, claims, placements, outcomes)
	return outcomes
}

// verdict is what a placement means for its event once it is settled.
func verdict(p seckill.Placement) outcome {
	switch {
	case p.Poison != "":
		return outcome{seckill.VerdictPoison, p.Poison}
	case !p.New:
		return outcome{seckill.VerdictDuplicate, string(p.Order.Status)}
	case p.Order.Status == seckill.OrderRejected:
		return outcome{seckill.VerdictRejected, string(p.Order.Reason)}
	}
	return outcome{verdict: seckill.VerdictApplied}
}

// settle tells Redis of the placements, one call for each sale; a claim that
// could not be settled gets the verdict "retry".
func (q *queue) settle(ctx context.Context, claims []seckill.AcceptedClaim, placements []seckill.Placement, outcomes []outcome) {
	bySale := make(map[string][]int)
	for i, p := range placements {
		if p.Poison == "" {
			bySale[p.Order.Sale] = append(bySale[p.Order.Sale], i)
		}
	}
	for sale, at := range bySale {
		settlements := make([]seckill.Settlement, len(at))
		for k, i := range at {
			settlements[k] = placements[i].Settlement(claims[i])
		}
		answers, err := q.reservations.Settle(ctx, sale, settlements)
		for k, i := range at {
			switch {
			case err != nil:
				outcomes[i] = outcome{seckill.VerdictRetry, err.Error()}
			case k >= len(answers) || answers[k] == seckill.SettledFenced:
				outcomes[i] = outcome{seckill.VerdictRetry, "the sale is being rebuilt"}
			}
		}
	}
}
