package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ClaimsHead returns the last sequence of stream CLAIMS; 0 if it never had a
// claim.
func (q *Queue) ClaimsHead(ctx context.Context) (uint64, error) {
	stream, err := q.stream(ctx, StreamClaims)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().State.LastSeq, nil
}

// ClaimsApplied reports whether every claim up to seq has been answered for
// good: acknowledged or parked. It is so, too, when the stream was created
// again and knows no seq: what it held then is lost, not in flight.
func (q *Queue) ClaimsApplied(ctx context.Context, seq uint64) (bool, error) {
	stream, err := q.stream(ctx, StreamClaims)
	if err != nil {
		return false, err
	}
	info := stream.CachedInfo()
	if info.State.Msgs == 0 || info.State.LastSeq < seq || info.State.FirstSeq > seq {
		return true, nil
	}
	if info.Config.Retention == jetstream.WorkQueuePolicy {
		return false, nil // it still holds a claim at or before seq
	}
	consumer, err := q.consumer(ctx)
	if err != nil {
		return false, err
	}
	return consumer.CachedInfo().AckFloor.Stream >= seq, nil
}

// Waiting counts the claims that are not answered for good, delivered or not,
// and tells when the oldest of them was published, by the broker's clock.
func (q *Queue) Waiting(ctx context.Context) (n uint64, oldest time.Time, err error) {
	stream, err := q.stream(ctx, StreamClaims)
	if err != nil {
		return 0, time.Time{}, err
	}
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return 0, state.FirstTime, nil
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subjectClaims+">"))
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("count waiting claims: %w", err)
	}
	for subject, messages := range info.State.Subjects {
		n += messages * claimsOf(subject)
	}
	return n, state.FirstTime, nil
}

// Subscription takes the messages of one consumer. It may be used from many
// goroutines.
type Subscription struct {
	q        *Queue
	find     func(context.Context) (jetstream.Consumer, error)
	consumer atomic.Pointer[jetstream.Consumer] // nil until it was found; it goes by name
}

// Claims subscribes to stream CLAIMS; it asks the broker nothing yet.
func (q *Queue) Claims() *Subscription { return &Subscription{q: q, find: q.consumer} }

// Fetch returns at most sizeMax messages, each of one or more claims: at once
// those that are there, else the first that comes within wait, else none. It
// waits that long even if ctx ends meanwhile: a message that is already on its
// way to us would otherwise be hidden from everybody for Config.AckWait. Every
// delivery must be answered. A missing stream or consumer is created; an error
// is worth a pause and another try.
func (s *Subscription) Fetch(ctx context.Context, sizeMax int, wait time.Duration) ([]Delivery, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("fetch messages: %w", ctx.Err())
	}
	found, err := s.fetch(ctx, sizeMax, wait)
	if err == nil || len(found) > 0 { // an error after the first is met again next time
		return found, nil
	}
	if vanished(err) {
		s.consumer.Store(nil)
		if healErr := s.q.heal(ctx); healErr != nil {
			err = errors.Join(err, healErr)
		}
	}
	return nil, fmt.Errorf("fetch messages: %w", err)
}

func (s *Subscription) fetch(ctx context.Context, sizeMax int, wait time.Duration) ([]Delivery, error) {
	consumer, err := s.lookUp(ctx)
	if err != nil {
		return nil, err
	}
	found, err := s.collect(consumer.FetchNoWait(sizeMax))
	if err != nil || len(found) > 0 {
		return found, err
	}
	found, err = s.collect(consumer.Fetch(1, jetstream.FetchMaxWait(wait)))
	if err != nil || len(found) == 0 || sizeMax == 1 {
		return found, err
	}
	more, err := s.collect(consumer.FetchNoWait(sizeMax - 1))
	return append(found, more...), err
}

func (s *Subscription) lookUp(ctx context.Context) (jetstream.Consumer, error) {
	if known := s.consumer.Load(); known != nil {
		return *known, nil
	}
	consumer, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	s.consumer.Store(&consumer)
	return consumer, nil
}

func (s *Subscription) collect(batch jetstream.MessageBatch, err error) ([]Delivery, error) {
	if err != nil {
		return nil, err
	}
	var found []Delivery
	for msg := range batch.Messages() {
		d, err := s.q.delivery(msg)
		if err != nil {
			return found, err
		}
		found = append(found, d)
	}
	return found, batch.Error() //nolint:wrapcheck // Fetch says what was being done
}
