// Package natsqueue keeps accepted claims and announced orders in NATS
// JetStream: it creates the streams, publishes to them and consumes from them.
package natsqueue

import (
	"context"
	"errors"
	"time"

	"seckill/shared/seckill"
)

var errTodo = errors.New("not yet")

// Config is where NATS is and how much it may keep.
type Config struct {
	URL      string `envconfig:"NATS_URL" required:"true"`
	Creds    string `envconfig:"NATS_CREDS"`
	Replicas int    `envconfig:"NATS_REPLICAS" default:"1"`
}

// Queue is a connection to the streams.
type Queue struct{}

// Ack is the broker's pending answer to one published claim. It is an alias of
// an interface literal, so that a function can name the same type itself.
type Ack = interface {
	// Done is closed once the answer, or its absence, is known.
	Done() <-chan struct{}
	// Err, after Done: nil means stored; anything else means unknown.
	Err() error
	// Duplicate, after Done: the broker had this message before.
	Duplicate() bool
}

// Delivery is one message of stream CLAIMS, to be answered exactly once.
type Delivery = interface {
	// ID is the message's Nats-Msg-Id, or its place in the stream.
	ID() string
	Data() []byte
	ContentType() string
	Header() map[string][]string
	// Delivered counts how often the message was delivered, from 1.
	Delivered() int
	Ack() error
	// Nak asks for the message again after delay.
	Nak(delay time.Duration) error
	// Park moves the message to stream DEAD; after an error it is still
	// unanswered.
	Park(ctx context.Context, reason string) error
	// InProgress starts the ack wait anew.
	InProgress() error
}

// Dead is a parked message.
type Dead struct {
	Seq       uint64 // its place in stream DEAD
	ID        string // its Nats-Msg-Id when it was first published
	Subject   string // where it was published first
	Reason    string
	Delivered int
	At        time.Time
	Data      []byte
}

// Subscription takes claims from stream CLAIMS.
type Subscription struct{}

// Open connects in the background.
func Open(_ Config) (*Queue, error) { return nil, errTodo }

// Close flushes what is unsent and closes the connection.
func (q *Queue) Close() error { return nil }

// Ping fails while the broker or stream CLAIMS is unusable.
func (q *Queue) Ping(_ context.Context) error { return errTodo }

// EnsureStreams creates what is missing.
func (q *Queue) EnsureStreams(_ context.Context) error { return errTodo }

// PublishClaims publishes without waiting; one Ack a claim, in order.
func (q *Queue) PublishClaims(_ context.Context, _ []seckill.AcceptedClaim, _ string) []Ack {
	return nil
}

// Announce publishes to stream ORDERS; nil only when all are stored.
func (q *Queue) Announce(_ context.Context, _ []seckill.Announcement) error { return errTodo }

// Changed tells every replica that an item or a sale changed.
func (q *Queue) Changed(_ context.Context, _ seckill.EventType, _ string, _ int64) error {
	return errTodo
}

// OnChanged calls f for every change told by Changed; with an empty kind and
// id after a reconnect, when anything may have changed unheard.
func (q *Queue) OnChanged(_ func(kind seckill.EventType, id string, version int64)) error {
	return errTodo
}

// ClaimsHead returns the last sequence of stream CLAIMS.
func (q *Queue) ClaimsHead(_ context.Context) (uint64, error) { return 0, errTodo }

// ClaimsApplied reports whether every claim up to seq has been answered.
func (q *Queue) ClaimsApplied(_ context.Context, _ uint64) (bool, error) { return false, errTodo }

// Backlog counts the claims not yet delivered, and those delivered but not yet
// answered.
func (q *Queue) Backlog(_ context.Context) (pending, ackPending uint64, err error) {
	return 0, 0, errTodo
}

// Claims subscribes to stream CLAIMS.
func (q *Queue) Claims() *Subscription { return &Subscription{} }

// Fetch returns at most sizeMax claims: what is there, or the first that comes
// within wait.
func (s *Subscription) Fetch(_ context.Context, _ int, _ time.Duration) ([]Delivery, error) {
	return nil, errTodo
}

// Dead lists at most limit parked messages, oldest first.
func (q *Queue) Dead(_ context.Context, _ int) ([]Dead, error) { return nil, errTodo }

// Resend publishes a parked message again where it came from.
func (q *Queue) Resend(_ context.Context, _ uint64) error { return errTodo }

// DropDead deletes a parked message.
func (q *Queue) DropDead(_ context.Context, _ uint64) error { return errTodo }
