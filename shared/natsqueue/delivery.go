package natsqueue

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/events"
)

// Delivery is one message of a Subscription, to be answered exactly once by
// Ack, Nak or Park. An answer that is lost with the connection has the message
// delivered again. It is an alias of an interface literal, so that a function
// can name the same type itself.
type Delivery = interface {
	// ID is the message's Nats-Msg-Id, or its place in the stream.
	ID() string
	Data() []byte
	// Header holds the headers in the case they were sent in.
	Header() map[string][]string
	// Delivered counts how often the message was delivered, from 1.
	Delivered() int
	// Ack removes the message.
	Ack() error
	// Nak has the message delivered again after delay; 0 is at once, more than
	// a second is rounded up to the next full second of the clock.
	Nak(delay time.Duration) error
	// Park moves the message to stream DEAD with the reason. After an error
	// it is not answered yet.
	Park(ctx context.Context, reason string) error
	// ParkPart stores one event of the message in stream DEAD, payload in
	// structured JSON, and leaves the message unanswered. index tells the
	// events of a message apart: parked again, it is stored once within the
	// duplicate window.
	ParkPart(ctx context.Context, index int, id string, payload []byte, reason string) error
	// InProgress starts the ack wait anew.
	InProgress() error
}

type delivery struct {
	q    *Queue
	msg  jetstream.Msg
	meta *jetstream.MsgMetadata
}

func (q *Queue) delivery(msg jetstream.Msg) (*delivery, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("read metadata of a message: %w", err)
	}
	return &delivery{q: q, msg: msg, meta: meta}, nil
}

func (d *delivery) ID() string {
	if id := d.msg.Headers().Get(jetstream.MsgIDHeader); id != "" {
		return id
	}
	return d.meta.Stream + "." + strconv.FormatUint(d.meta.Sequence.Stream, 10)
}

func (d *delivery) Data() []byte                { return d.msg.Data() }
func (d *delivery) Header() map[string][]string { return d.msg.Headers() }
func (d *delivery) Delivered() int              { return int(d.meta.NumDelivered) }

func (d *delivery) Ack() error { return d.answered("ack", d.msg.Ack()) }

func (d *delivery) Nak(delay time.Duration) error {
	if delay <= 0 {
		return d.answered("nak", d.msg.Nak())
	}
	if delay > time.Second {
		delay = untilFullSecond(time.Now(), delay)
	}
	return d.answered("nak", d.msg.NakWithDelay(delay))
}

// untilFullSecond rounds a delay up so that it ends on a full second. The
// broker looks through all waiting messages whenever one of them is due: with
// 20,000 of them due at any instant of the next 30 s that took five times the
// CPU it takes when they are due together.
func untilFullSecond(now time.Time, delay time.Duration) time.Duration {
	return now.Add(delay + time.Second - 1).Truncate(time.Second).Sub(now)
}

func (d *delivery) InProgress() error { return d.answered("keep", d.msg.InProgress()) }

// Park publishes first and takes the original away only when that is stored.
// The id is the message's place in its stream, so a repeat is stored once.
func (d *delivery) Park(ctx context.Context, reason string) error {
	if err := d.bury(ctx, d.parked(parcel{id: d.ID(), data: d.msg.Data(), header: d.msg.Headers()}, reason)); err != nil {
		return err
	}
	return d.answered("park", d.msg.TermWithReason(reason))
}

func (d *delivery) ParkPart(ctx context.Context, index int, id string, payload []byte, reason string) error {
	return d.bury(ctx, d.parked(parcel{
		id: id, place: "." + strconv.Itoa(index), data: payload, header: nats.Header{headerContentType: {events.ContentType}},
	}, reason))
}

func (d *delivery) bury(ctx context.Context, parked *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, d.q.config.PublishTimeout)
	defer cancel()
	_, err := d.q.js.PublishMsg(ctx, parked)
	if vanished(err) && d.q.heal(ctx) == nil {
		_, err = d.q.js.PublishMsg(ctx, parked)
	}
	if err != nil {
		return fmt.Errorf("park event %s: %w", parked.Header.Get(headerID), err)
	}
	return nil
}

func (d *delivery) answered(how string, err error) error {
	if err != nil {
		return fmt.Errorf("%s message %s: %w", how, d.ID(), err)
	}
	return nil
}

// Headers of a parked message, beside those it came with.
const (
	headerID        = "Seckill-Id"
	headerReason    = "Seckill-Reason"
	headerSubject   = "Seckill-Subject"
	headerSeq       = "Seckill-Seq"
	headerDelivered = "Seckill-Delivered"
	headerTime      = "Seckill-Time"
	headerCut       = "Seckill-Cut"
)

const (
	// headerBytesMax bounds a header that comes from outside.
	headerBytesMax = 500
	// parkedHeadersMax is room for the headers above within a payload.
	parkedHeadersMax = 4 << 10
)

// parcel is what is parked: a whole message, or one event of it.
type parcel struct {
	id     string
	place  string // within the message
	data   []byte
	header nats.Header
}

// parked is the parcel as it is stored in DEAD. One that would be too large
// with its new headers is cut to what an operator can still judge.
func (d *delivery) parked(p parcel, reason string) *nats.Msg {
	msg := nats.NewMsg(subjectDead + "claims")
	msg.Data = p.data
	size := len(msg.Data)
	for key, values := range p.header {
		if strings.HasPrefix(key, "Nats-") { // these command the broker; they were obeyed once
			continue
		}
		msg.Header[key] = values
		for _, value := range values {
			size += len(key) + len(value) + len(": \r\n")
		}
	}
	if room := int(min(d.q.conn.MaxPayload(), messageSizeMax)) - parkedHeadersMax; size > room {
		msg.Header = nats.Header{headerCut: {strconv.Itoa(len(msg.Data))}}
		msg.Data = msg.Data[:min(len(msg.Data), room)]
	}
	subject := d.msg.Subject()
	if p.place != "" {
		subject = alone(subject)
	}
	set := func(key, value string) { msg.Header.Set(key, value[:min(len(value), headerBytesMax)]) }
	set(headerID, p.id)
	set(headerReason, reason)
	set(headerSubject, subject)
	set(headerSeq, strconv.FormatUint(d.meta.Sequence.Stream, 10))
	set(headerDelivered, strconv.FormatUint(d.meta.NumDelivered, 10))
	set(headerTime, d.meta.Timestamp.UTC().Format(time.RFC3339Nano))
	set(jetstream.MsgIDHeader, fmt.Sprintf("%s.%d.%d%s", d.meta.Stream, d.meta.Sequence.Stream, d.meta.Timestamp.UnixNano(), p.place))
	return msg
}

// alone is the subject of one claim of a message on this subject.
func alone(subject string) string {
	sale, _, _ := strings.Cut(strings.TrimPrefix(subject, subjectClaims), ".")
	return subjectClaims + sale
}
