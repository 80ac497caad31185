package natsqueue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

// ErrBusy means that too many events wait for the broker's answer: this one was
// not sent.
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

// PublishClaims sends the claims' events to stream CLAIMS, each as a message of
// its own, and returns at once, with one Ack for each claim in the same order.
// attempt tells a deliberate repetition from an accidental one: the broker
// stores a claim once for each attempt within its duplicate window. The end of
// ctx does not take back what is on its way.
func (q *Queue) PublishClaims(ctx context.Context, claims []seckill.AcceptedClaim, attempt string) []Ack {
	msgs := make([]*nats.Msg, len(claims))
	for i := range claims {
		msgs[i] = claimsMessage(claims[i:i+1], attempt)
	}
	acks := make([]Ack, len(claims))
	for i, a := range q.send(ctx, msgs, len(claims)) {
		acks[i] = a
	}
	return acks
}

// firstAttempt is the attempt of claims that were accepted just now.
const firstAttempt = "0"

// PublishBatch sends the claims that were accepted together, of one sale, as
// PublishClaims does, but up to Config.ClaimsPerMessage share a message, and so
// their Ack: the broker's cost is that of a message. Whoever publishes a claim
// again uses PublishClaims, for in other company it is not known as the same.
func (q *Queue) PublishBatch(ctx context.Context, claims []seckill.AcceptedClaim) []Ack {
	var msgs []*nats.Msg
	for chunk := range slices.Chunk(claims, q.config.ClaimsPerMessage) {
		msgs = append(msgs, claimsMessage(chunk, firstAttempt))
	}
	sent := q.send(ctx, msgs, len(claims))
	acks := make([]Ack, len(claims))
	for i := range acks {
		acks[i] = sent[i/q.config.ClaimsPerMessage]
	}
	return acks
}

// claimBytes is the room for one claim's event.
const claimBytes = 768

// claimsMessage carries claims of one sale: one as an event of its own, several
// as a batch, whose subject tells how many. The id stands for exactly these.
func claimsMessage(claims []seckill.AcceptedClaim, attempt string) *nats.Msg {
	subject, id := subjectClaims+claims[0].Sale, events.ClaimID(claims[0].Claim)
	if len(claims) == 1 {
		return message(subject, id+"."+attempt, events.ContentType, events.AppendClaim(make([]byte, 0, claimBytes), claims[0], ""))
	}
	data, digest := append(make([]byte, 0, claimBytes*len(claims)), '['), sha256.New()
	for i, c := range claims {
		if i > 0 {
			data = append(data, ',')
		}
		data = events.AppendClaim(data, c, "")
		_, _ = digest.Write([]byte(c.Claim)) // a hash takes whatever it is given
	}
	company := hex.EncodeToString(digest.Sum(nil)[:16])
	return message(subject+"."+strconv.Itoa(len(claims)), id+"."+company+"."+attempt, events.BatchContentType, append(data, ']'))
}

// claimsOf tells how many claims a message on this subject carries.
func claimsOf(subject string) uint64 {
	_, count, _ := strings.Cut(strings.TrimPrefix(subject, subjectClaims), ".")
	n, err := strconv.ParseUint(count, 10, 16)
	if err != nil {
		return 1
	}
	return n
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
		msgs[i] = message(subjectOrders+a.Data.Sale, a.ID, events.ContentType, data)
	}
	for i, a := range q.send(ctx, msgs, len(msgs)) {
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

func message(subject, id, contentType string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{
		jetstream.MsgIDHeader: {id}, headerContentType: {contentType},
	}}
}

// headerContentType is in lower case, as the NATS binding of CloudEvents asks.
const headerContentType = "content-type"

// send publishes msgs, which carry n events, in the background.
func (q *Queue) send(ctx context.Context, msgs []*nats.Msg, n int) []*ack {
	acks := make([]*ack, len(msgs))
	for i := range acks {
		acks[i] = &ack{done: make(chan struct{})}
	}
	if q.pending.Add(int64(n)) > q.config.PublishPendingMax {
		q.pending.Add(-int64(n))
		settleAll(acks, fmt.Errorf("publish: %w", ErrBusy))
		return acks
	}
	// The library may wait for a socket that takes no bytes, so it is given a
	// goroutine of its own; the timer answers whatever happens there.
	timer := time.AfterFunc(q.config.PublishTimeout, func() {
		settleAll(acks, fmt.Errorf("publish: %w", nats.ErrTimeout))
	})
	go func() {
		defer q.pending.Add(-int64(n))
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
