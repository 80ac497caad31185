package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

const subjectChanged = "seckill.changed."

// Changed tells every replica that an item or a sale changed: kind is
// EventItemChanged or EventSaleChanged, version its version since. It is heard
// at most once and only by who listens now; nil means the broker has it.
func (q *Queue) Changed(ctx context.Context, kind seckill.EventType, id string, version int64) error {
	msg := nats.NewMsg(subjectChanged + id)
	msg.Data = events.AppendChange(nil, kind, events.Change{ID: id, Version: version})
	msg.Header.Set(headerContentType, events.ContentType)
	err := q.conn.PublishMsg(msg)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, q.config.PublishTimeout)
		defer cancel()
		err = q.conn.FlushWithContext(ctx)
	}
	if err != nil {
		return fmt.Errorf("tell change of %s: %w", id, err)
	}
	return nil
}

// listener is one function that wants to hear of changes.
type listener struct {
	hear func(kind seckill.EventType, id string, version int64)
	sub  *nats.Subscription
}

// OnChanged calls hear for each change that Changed told, until ctx ends. With
// an empty kind and id anything may have changed: messages may have passed
// unheard while the connection was away or this listener was too slow. hear is
// called from several goroutines and should not block.
func (q *Queue) OnChanged(ctx context.Context, hear func(kind seckill.EventType, id string, version int64)) error {
	l := &listener{hear: hear}
	sub, err := q.conn.Subscribe(subjectChanged+">", func(msg *nats.Msg) {
		e, err := events.Parse(msg.Data)
		change, err2 := e.Change()
		if err := errors.Join(err, err2); err != nil {
			slog.Warn("a change was told that cannot be read", "subject", msg.Subject, "error", err)
			hear("", "", 0)
			return
		}
		hear(seckill.EventType(e.Type), change.ID, change.Version)
	})
	if err != nil {
		return fmt.Errorf("listen for changes: %w", err)
	}
	l.sub = sub
	q.listening.Lock()
	q.listeners[l] = struct{}{}
	q.listening.Unlock()
	context.AfterFunc(ctx, func() {
		q.listening.Lock()
		delete(q.listeners, l)
		q.listening.Unlock()
		// It fails only when the connection is closed, and then it is gone too.
		_ = sub.Unsubscribe()
	})
	return nil
}

// mayHaveMissed tells the listener on sub that anything may have changed; all
// listeners if sub is nil.
func (q *Queue) mayHaveMissed(sub *nats.Subscription) {
	q.listening.Lock()
	var those []*listener
	for l := range q.listeners {
		if sub == nil || l.sub == sub {
			those = append(those, l)
		}
	}
	q.listening.Unlock()
	for _, l := range those {
		l.hear("", "", 0)
	}
}

// asyncError hears of errors that no call can return.
func (q *Queue) asyncError(_ *nats.Conn, sub *nats.Subscription, err error) {
	slog.Warn("nats", "error", err)
	if sub != nil && errors.Is(err, nats.ErrSlowConsumer) {
		q.mayHaveMissed(sub)
	}
}
