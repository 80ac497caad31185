package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The streams, their subjects and the consumer.
const (
	StreamClaims = "CLAIMS"
	StreamOrders = "ORDERS"
	StreamDead   = "DEAD"
	// Consumer is the durable pull consumer of stream CLAIMS.
	Consumer = "order-consumer"

	subjectClaims = "seckill.claims."
	subjectOrders = "seckill.orders."
	subjectDead   = "seckill.dead."
)

const (
	duplicateWindow = 2 * time.Minute
	// messageSizeMax is what a broker takes by default. Ours are below 1 KiB;
	// what somebody else sent must still fit to be parked.
	messageSizeMax = 1 << 20
	ordersAgeMax   = 7 * 24 * time.Hour
	// claimsAgeMin is the shortest age limit under which claims may wait out
	// an outage; below it the queue reports itself broken.
	claimsAgeMin = time.Hour
	// createAfter is how long a stream must be missing before it is created. A
	// broker forgets a stream that is deleted before it puts its files away:
	// one that is created in between is built on files that are about to go,
	// and from then on takes no message and refuses none.
	createAfter = 300 * time.Millisecond
	// healEvery spaces the rounds that create what vanished.
	healEvery = time.Second
)

// ErrUnsafe means that stream CLAIMS was set up so that claims get lost.
var ErrUnsafe = errors.New("stream is set up to lose claims")

// streams are created like this when they are missing.
//
// CLAIMS is a work queue: an answered claim leaves it, so that the stream
// never fills with work that is done, what is in it is the backlog, and a
// consumer that was deleted and created again gets what is unanswered and
// nothing else. ORDERS is a log for whoever wants to listen. DEAD waits for an
// operator, for ever. All of them refuse when full: none eats its oldest.
func (c Config) streams() []jetstream.StreamConfig {
	base := func(name, subject string, bytesMax int64) jetstream.StreamConfig {
		return jetstream.StreamConfig{
			Name: name, Subjects: []string{subject + ">"}, Storage: jetstream.FileStorage, Discard: jetstream.DiscardNew,
			MaxBytes: bytesMax, MaxMsgSize: messageSizeMax, Duplicates: duplicateWindow, Replicas: c.Replicas,
		}
	}
	claims := base(StreamClaims, subjectClaims, c.ClaimsBytesMax)
	claims.Retention = jetstream.WorkQueuePolicy
	orders := base(StreamOrders, subjectOrders, c.OrdersBytesMax)
	orders.MaxAge = ordersAgeMax
	return []jetstream.StreamConfig{claims, orders, base(StreamDead, subjectDead, c.DeadBytesMax)}
}

// consumer delivers every claim until it is answered. It sets no bound on the
// claims that are delivered and not yet answered: those that wait for their
// next try count among them, and at a bound no other claim would be delivered
// at all. The stream's bytes bound them, and each fetch asks for few.
func (c Config) consumer() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: Consumer, AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.AckWait,
		MaxDeliver: -1, MaxAckPending: -1, DeliverPolicy: jetstream.DeliverAllPolicy,
	}
}

// EnsureStreams creates the streams and the consumer that are missing and
// leaves the others as the operator set them. It may be called at any time. An
// error that wraps ErrUnsafe means all exist, but stream CLAIMS loses claims;
// what else is odd is logged.
func (q *Queue) EnsureStreams(ctx context.Context) error {
	var claims jetstream.StreamConfig
	var missing []jetstream.StreamConfig
	for _, config := range q.config.streams() {
		stream, err := q.js.Stream(ctx, config.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			missing = append(missing, config)
		case err != nil:
			return fmt.Errorf("ensure stream %s: %w", config.Name, err)
		case config.Name == StreamClaims:
			claims = stream.CachedInfo().Config
		}
	}
	if err := q.create(ctx, missing, &claims); err != nil {
		return err
	}
	consumer, err := q.js.Consumer(ctx, StreamClaims, Consumer)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		slog.Info("creating consumer", "stream", StreamClaims, "consumer", Consumer)
		consumer, err = q.js.CreateConsumer(ctx, StreamClaims, q.config.consumer())
	}
	if err != nil {
		return fmt.Errorf("ensure consumer %s: %w", Consumer, err)
	}
	q.logOnce(oddities(claims, consumer.CachedInfo().Config))
	return danger(claims)
}

// create creates the streams that are still missing after createAfter.
func (q *Queue) create(ctx context.Context, missing []jetstream.StreamConfig, claims *jetstream.StreamConfig) error {
	if len(missing) == 0 {
		return nil
	}
	pause := time.NewTimer(createAfter)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return fmt.Errorf("create stream %s: %w", missing[0].Name, ctx.Err())
	}
	for _, config := range missing {
		found, err := q.ensureStream(ctx, config)
		if err != nil {
			return err
		}
		if config.Name == StreamClaims {
			*claims = found
		}
	}
	return nil
}

func (q *Queue) ensureStream(ctx context.Context, config jetstream.StreamConfig) (jetstream.StreamConfig, error) {
	stream, err := q.js.Stream(ctx, config.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		slog.Info("creating stream", "stream", config.Name)
		stream, err = q.js.CreateStream(ctx, config)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another replica was faster, with other limits
			stream, err = q.js.Stream(ctx, config.Name)
		}
	}
	if err != nil {
		return config, fmt.Errorf("ensure stream %s: %w", config.Name, err)
	}
	return stream.CachedInfo().Config, nil
}

// danger tells how stream CLAIMS loses claims without anything going wrong.
func danger(claims jetstream.StreamConfig) error {
	if claims.MaxAge > 0 && claims.MaxAge < claimsAgeMin {
		return fmt.Errorf("%w: %s forgets them after %s; at least %s is needed to wait out an outage",
			ErrUnsafe, claims.Name, claims.MaxAge, claimsAgeMin)
	}
	if !slices.Contains(claims.Subjects, subjectClaims+">") {
		return fmt.Errorf("%w: %s does not take %s>", ErrUnsafe, claims.Name, subjectClaims)
	}
	return nil
}

// oddities names what an operator should know he has set up, empty if nothing.
func oddities(claims jetstream.StreamConfig, consumer jetstream.ConsumerConfig) string {
	var found []string
	if err := danger(claims); err != nil {
		found = append(found, err.Error())
	}
	if claims.Discard == jetstream.DiscardOld {
		found = append(found, "a full "+claims.Name+" discards its oldest claims instead of refusing new ones")
	}
	if consumer.MaxDeliver > 0 {
		found = append(found, fmt.Sprintf("consumer %s gives a claim up after %d deliveries", consumer.Durable, consumer.MaxDeliver))
	}
	return strings.Join(found, "; ")
}

// logOnce logs what is odd when it has changed, not at each look.
func (q *Queue) logOnce(odd string) {
	if last := q.odd.Swap(&odd); odd != "" && (last == nil || *last != odd) {
		slog.Error("streams are set up oddly", "what", odd)
	}
}

// heal creates what has vanished. Many callers at once make one round, and a
// round is not repeated within healEvery: they share its result. It logs what
// it returns.
func (q *Queue) heal(ctx context.Context) error {
	q.healing.Lock()
	defer q.healing.Unlock()
	if time.Since(q.healedAt) < healEvery {
		return q.healErr
	}
	err := q.EnsureStreams(ctx)
	if errors.Is(err, ErrUnsafe) { // they exist; Ping reports the rest
		err = nil
	}
	if err != nil && !q.conn.IsClosed() {
		slog.Warn("streams cannot be created", "error", err)
	}
	q.healedAt, q.healErr = time.Now(), err
	return err
}

// stream looks at a stream as it is now, created if it has vanished.
func (q *Queue) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	stream, err := q.js.Stream(ctx, name)
	if vanished(err) && q.heal(ctx) == nil {
		stream, err = q.js.Stream(ctx, name)
	}
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", name, err)
	}
	return stream, nil
}

// consumer looks at the consumer as it is now, created if it has vanished.
func (q *Queue) consumer(ctx context.Context) (jetstream.Consumer, error) {
	consumer, err := q.js.Consumer(ctx, StreamClaims, Consumer)
	if vanished(err) && q.heal(ctx) == nil {
		consumer, err = q.js.Consumer(ctx, StreamClaims, Consumer)
	}
	if err != nil {
		return nil, fmt.Errorf("look at consumer %s: %w", Consumer, err)
	}
	return consumer, nil
}

// vanished reports whether err means that a stream or the consumer is gone.
func vanished(err error) bool {
	for _, gone := range []error{
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, jetstream.ErrStreamNotFound,
		jetstream.ErrConsumerNotFound, jetstream.ErrConsumerDoesNotExist, jetstream.ErrConsumerDeleted,
	} {
		if errors.Is(err, gone) {
			return true
		}
	}
	return false
}
