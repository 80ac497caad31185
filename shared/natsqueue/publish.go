package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

// ErrBusy means that too many messages wait for the broker's answer: this one
// was not sent.
var ErrBusy = errors.New("too many unanswered publishes")

// Ack is the broker's pending answer to one published claim. It is an alias of
// an interface literal, so that a function can name the same type itself.
type Ack = interface {
	// Done is closed once the answer is known or no longer waited for, within
	// Config.PublishTimeout.
	Done() <-chan struct{}
	// Err is nil if the broker stored the claim, or had it stored before.
	// Anything else means unknown: it may be stored. Valid after Done.
	Err() error
	// Duplicate reports that the broker had seen this claim and attempt
	// within its duplicate window. Valid after Done.
	Duplicate() bool
}

// ack implements Ack; it is settled exactly once.
type ack struct {
	once      sync.Once
	done      chan struct{}
	err       error
	duplicate bool
}

func (a *ack) Done() <-chan struct{} { return a.done }
func (a *ack) Err() error            { return a.err }
func (a *ack) Duplicate() bool       { return a.duplicate }

func (a *ack) settle(duplicate bool, err error) {
	a.once.Do(func() {
		a.duplicate, a.err = duplicate, err
		close(a.done)
	})
}

// PublishClaims sends the claims' events to stream CLAIMS and returns at once,
// with one Ack for each claim in the same order. attempt tells a deliberate
// repetition from an accidental one: the broker stores a claim once for each
// attempt within its duplicate window. The end of ctx does not take back what
// is on its way.
func (q *Queue) PublishClaims(ctx context.Context, claims []seckill.AcceptedClaim, attempt string) []Ack {
	msgs := make([]*nats.Msg, len(claims))
	for i, c := range claims {
		msgs[i] = message(subjectClaims+c.Sale, events.ClaimID(c.Claim)+"."+attempt, events.AppendClaim(make([]byte, 0, 768), c, ""))
	}
	acks := make([]Ack, len(claims))
	for i, a := range q.send(ctx, msgs) {
		acks[i] = a
	}
	return acks
}

// Announce publishes to stream ORDERS; the message id is the announcement's.
// It returns nil only when all are stored. On an error any of them may be;
// announcing them again is right.
func (q *Queue) Announce(ctx context.Context, announcements []seckill.Announcement) error {
	msgs := make([]*nats.Msg, len(announcements))
	for i, a := range announcements {
		data, err := events.AppendOrder(make([]byte, 0, 768), a)
		if err != nil {
			return fmt.Errorf("announce: %w", err)
		}
		msgs[i] = message(subjectOrders+a.Data.Sale, a.ID, data)
	}
	for i, a := range q.send(ctx, msgs) {
		select {
		case <-a.done:
		case <-ctx.Done():
			return fmt.Errorf("announce %s: %w", announcements[i].ID, ctx.Err())
		}
		if a.err != nil {
			return fmt.Errorf("announce %s: %w", announcements[i].ID, a.err)
		}
	}
	return nil
}

func message(subject, id string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		jetstream.MsgIDHeader: {id}, headerContentType: {events.ContentType},
	}}
}

// headerContentType is in lower case, as the NATS binding of CloudEvents asks.
const headerContentType = "content-type"

// send publishes msgs in the background.
func (q *Queue) send(ctx context.Context, msgs []*nats.Msg) []*ack {
	acks := make([]*ack, len(msgs))
	for i := range acks {
		acks[i] = &ack{done: make(chan struct{})}
	}
	n := int64(len(msgs))
	if q.pending.Add(n) > q.config.PublishPendingMax {
		q.pending.Add(-n)
		settleAll(acks, fmt.Errorf("publish: %w", ErrBusy))
		return acks
	}
	// The library may wait for a socket that takes no bytes, so it is given a
	// goroutine of its own; the timer answers whatever happens there.
	timer := time.AfterFunc(q.config.PublishTimeout, func() {
		settleAll(acks, fmt.Errorf("publish: %w", nats.ErrTimeout))
	})
	go func() {
		defer q.pending.Add(-n)
		defer timer.Stop()
		q.sendAll(context.WithoutCancel(ctx), msgs, acks)
	}()
	return acks
}

func settleAll(acks []*ack, err error) {
	for _, a := range acks {
		a.settle(false, err)
	}
}

// sendAll publishes, and once more what met no stream, after creating it.
func (q *Queue) sendAll(ctx context.Context, msgs []*nats.Msg, acks []*ack) {
	ctx, cancel := context.WithTimeout(ctx, q.config.PublishTimeout)
	defer cancel()
	msgs, acks = q.sendOnce(msgs, acks, vanished)
	if len(msgs) == 0 {
		return
	}
	if err := q.heal(ctx); err != nil {
		settleAll(acks, fmt.Errorf("publish: %w", err))
		return
	}
	q.sendOnce(msgs, acks, func(error) bool { return false })
}

// sendOnce publishes all, waits for all, and returns those whose error is for
// the caller to judge.
func (q *Queue) sendOnce(msgs []*nats.Msg, acks []*ack, again func(error) bool) ([]*nats.Msg, []*ack) {
	futures := make([]jetstream.PubAckFuture, len(msgs))
	for i, msg := range msgs {
		future, err := q.js.PublishMsgAsync(msg)
		if err == nil {
			futures[i] = future
			continue
		}
		err = fmt.Errorf("publish: %w", err)
		if !errors.Is(err, nats.ErrMaxPayload) && !errors.Is(err, nats.ErrBadSubject) {
			settleAll(acks[i:], err) // the connection is away: the others would fail alike
			break
		}
		acks[i].settle(false, err)
	}
	var leftMsgs []*nats.Msg
	var leftAcks []*ack
	for i, future := range futures {
		if future == nil {
			continue
		}
		stored, err := wait(future)
		if err != nil && again(err) {
			leftMsgs, leftAcks = append(leftMsgs, msgs[i]), append(leftAcks, acks[i])
			continue
		}
		acks[i].settle(stored, err)
	}
	return leftMsgs, leftAcks
}

// wait returns within the library's own timeout for the answer.
func wait(future jetstream.PubAckFuture) (duplicate bool, err error) {
	select {
	case stored := <-future.Ok():
		return stored.Duplicate, nil
	case err := <-future.Err():
		return false, fmt.Errorf("publish: %w", err)
	}
}
