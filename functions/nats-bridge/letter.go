package natsbridge

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"seckill/shared/events"
)

// letter is a message of the queue on its way. It is answered when each of its
// events has a result: taken away when all are done, poison parked for itself,
// and delivered again as a whole when one has to be; the others are known as
// done then. It belongs to one worker.
type letter struct {
	Delivery
	parts     int
	left      int // events without a result
	again     bool
	delay     time.Duration // of again
	condemned []condemned
}

// item is one event of a letter.
type item struct {
	*letter
	index   int
	event   string // the CloudEvent's id
	payload []byte // the CloudEvent in structured JSON
}

// condemned is an event that can never be applied.
type condemned struct {
	item
	reason string
}

// open returns the events of a message that can be posted, and judges the
// others.
func (b *Bridge) open(ctx context.Context, d Delivery) []item {
	parts, err := events.Split(d.Header(), d.Data())
	if err != nil {
		b.poison(ctx, &letter{Delivery: d, parts: 1, condemned: []condemned{{reason: err.Error()}}})
		return nil
	}
	l := &letter{Delivery: d, parts: len(parts), left: len(parts)}
	items := make([]item, 0, len(parts))
	for i, p := range parts {
		it := item{letter: l, index: i, event: p.ID, payload: p.Payload}
		if p.Err != nil {
			b.condemn(ctx, it, p.Err.Error())
			continue
		}
		items = append(items, it)
	}
	return items
}

// done notes that an event needs nothing more.
func (b *Bridge) done(ctx context.Context, it item) {
	if it.left--; it.left == 0 {
		b.answer(ctx, it.letter)
	}
}

// retry notes that an event has to come again.
func (b *Bridge) retry(ctx context.Context, it item, delay time.Duration) {
	it.again, it.delay = true, max(it.delay, delay)
	b.done(ctx, it)
}

// condemn notes that an event can never be applied.
func (b *Bridge) condemn(ctx context.Context, it item, reason string) {
	it.condemned = append(it.condemned, condemned{it, reason})
	b.done(ctx, it)
}

// answer answers the queue for a letter whose events all have their results.
func (b *Bridge) answer(ctx context.Context, l *letter) {
	switch {
	case l.again:
		b.answered(l, l.Nak(l.delay))
	case len(l.condemned) > 0:
		b.poison(ctx, l)
	default:
		b.answered(l, l.Ack())
	}
}

const (
	// poisonTries is how often an event must have been found to be poison, or
	// been delivered at all, before it is parked.
	poisonTries    = 3
	poisonRetryIn  = 500 * time.Millisecond
	parkingRetryIn = 30 * time.Second
)

// poison parks what can never be applied, at its third delivery. When it
// cannot be parked it comes again after a long while.
func (b *Bridge) poison(ctx context.Context, l *letter) {
	if l.Delivered() < poisonTries {
		b.answered(l, l.Nak(poisonRetryIn/2+rand.N(poisonRetryIn/2)))
		return
	}
	for _, c := range l.condemned {
		if err := l.park(ctx, c); err != nil {
			slog.Error("poison cannot be parked", "id", l.ID(), "event", c.event, "reason", c.reason, "error", err)
			b.answered(l, l.Nak(parkingRetryIn/2+rand.N(parkingRetryIn/2)))
			return
		}
		slog.Warn("poison is parked", "id", l.ID(), "event", c.event, "reason", c.reason, "delivered", l.Delivered())
	}
	if l.parts > 1 {
		b.answered(l, l.Ack())
	}
}

// park moves a message with one event as it came, and copies one of several.
func (l *letter) park(ctx context.Context, c condemned) error {
	if l.parts == 1 {
		return l.Park(ctx, c.reason)
	}
	return l.ParkPart(ctx, c.index, c.event, c.payload, c.reason)
}

// answered notes an answer that did not reach the queue: it will deliver the
// message again, which is harmless.
func (b *Bridge) answered(d Delivery, err error) {
	if err != nil {
		slog.Debug("an answer is lost", "id", d.ID(), "error", err)
	}
}
