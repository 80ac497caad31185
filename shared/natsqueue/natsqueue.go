// Package natsqueue keeps accepted claims and announced orders in NATS
// JetStream: it creates the streams, publishes to them and consumes from them.
//
// Nothing here waits for a broker that is away: a publish fails, or is given
// up after Config.PublishTimeout. Whatever vanishes (a stream, a consumer, the
// broker with all of them) is created again by whoever meets the gap.
package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Queue is a connection to the streams. It may be used from many goroutines.
type Queue struct {
	config Config
	conn   *nats.Conn
	js     jetstream.JetStream
	opened chan struct{} // closed when the two above are set

	// pending counts the events published but not yet answered.
	pending atomic.Int64

	healing  sync.Mutex // guards the two below, and is held while creating
	healedAt time.Time
	healErr  error

	odd atomic.Pointer[string] // what was last logged about the set-up

	listening sync.Mutex
	listeners map[*listener]struct{}
}

// Open connects in the background: it succeeds while the broker is away, and
// takes at most a few seconds to notice that. Close it after use.
func Open(config Config) (*Queue, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("open nats: %w", err)
	}
	config = config.withDefaults()
	q := &Queue{config: config, opened: make(chan struct{}), listeners: map[*listener]struct{}{}}
	conn, err := nats.Connect(config.URL, append(config.options(q.connected), nats.ErrorHandler(q.asyncError))...)
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	// Our own bound is met first; the library's would make a publish wait.
	js, err := jetstream.New(conn,
		jetstream.WithPublishAsyncMaxPending(int(2*config.PublishPendingMax)),
		jetstream.WithPublishAsyncTimeout(config.PublishTimeout),
		jetstream.WithDefaultTimeout(config.PublishTimeout))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("open jetstream: %w", err)
	}
	q.conn, q.js = conn, js
	close(q.opened)
	return q, nil
}

// closeTimeout bounds how long Close waits for the last bytes to leave.
const closeTimeout = 2 * time.Second

// Close sends what is still unsent, answers included, and disconnects.
func (q *Queue) Close() error {
	err := q.conn.FlushTimeout(closeTimeout)
	q.conn.Close()
	if err != nil && !errors.Is(err, nats.ErrConnectionClosed) {
		return fmt.Errorf("flush nats: %w", err)
	}
	return nil
}

// Ping fails while the broker is away, a stream cannot be created, or stream
// CLAIMS is set up so that claims would be lost. A stream or a consumer that
// is missing is created.
func (q *Queue) Ping(ctx context.Context) error {
	if !q.conn.IsConnected() {
		return fmt.Errorf("ping nats: %w", nats.ErrDisconnected)
	}
	return q.EnsureStreams(ctx)
}

// connected runs after each connect: the broker may have lost its streams, and
// messages may have passed unheard.
func (q *Queue) connected() {
	<-q.opened // the connection may call while Open still waits for it
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), q.config.PublishTimeout)
		defer cancel()
		q.healing.Lock()
		q.healedAt = time.Time{} // whatever was there before is no longer known to be
		q.healing.Unlock()
		_ = q.heal(ctx) // logged there, and tried again by the next who meets the gap
	}()
	q.mayHaveMissed(nil)
}
