package natsqueue

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Notifier is the durable pull consumer of stream ORDERS that Orders uses.
const Notifier = "notifier"

// notifierAckPendingMax bounds the events that wait for their next try: behind
// a receiver in trouble the rest waits in the stream.
const notifierAckPendingMax = 1000

// Orders subscribes to what stream ORDERS still holds and to all that comes; it
// asks the broker nothing yet. Its consumer is set as configured, or created
// when it is missing, and then begins with the oldest event there is: a receiver
// must know an event by its id. The events must be answered by Ack or Nak; Park is for claims.
func (q *Queue) Orders() *Subscription {
	return &Subscription{q: q, find: func(ctx context.Context) (jetstream.Consumer, error) {
		consumer, err := q.js.CreateOrUpdateConsumer(ctx, StreamOrders, jetstream.ConsumerConfig{
			Durable: Notifier, AckPolicy: jetstream.AckExplicitPolicy, AckWait: q.config.AckWait,
			MaxDeliver: -1, MaxAckPending: notifierAckPendingMax, DeliverPolicy: jetstream.DeliverAllPolicy,
		})
		if err != nil {
			return nil, fmt.Errorf("ensure consumer %s: %w", Notifier, err)
		}
		return consumer, nil
	}}
}
