package natsqueue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/seckill"
)

// Dead is a parked message.
type Dead struct {
	Seq       uint64 // its place in stream DEAD
	ID        string // its id where it was published first
	Subject   string // where it was published first
	Reason    string
	Delivered int       // how often it had been delivered
	At        time.Time // when it was published first
	ParkedAt  time.Time
	Data      []byte
	// Cut tells that Data and the headers are not whole: the message was as
	// large as the broker allows. It cannot be sent again.
	Cut bool
}

// Dead lists at most limit parked messages, oldest first.
func (q *Queue) Dead(ctx context.Context, limit int) ([]Dead, error) {
	stream, err := q.stream(ctx, StreamDead)
	if err != nil {
		return nil, err
	}
	var found []Dead
	for seq := uint64(1); len(found) < limit; {
		msg, err := stream.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subjectDead+">"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return found, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read stream %s from %d: %w", StreamDead, seq, err)
		}
		found = append(found, dead(msg))
		seq = msg.Sequence + 1
	}
	return found, nil
}

// parkedMax bounds the parked claims that ParkedClaims looks at.
const parkedMax = 10_000

// ParkedClaims returns the ids of the claims that are parked.
func (q *Queue) ParkedClaims(ctx context.Context) (map[string]bool, error) {
	stream, err := q.stream(ctx, StreamDead)
	if err != nil {
		return nil, err
	}
	claims := map[string]bool{}
	if stream.CachedInfo().State.Msgs == 0 {
		return claims, nil
	}
	parked, err := q.Dead(ctx, parkedMax)
	for _, d := range parked {
		claim, _, _ := strings.Cut(d.ID, ".")
		claims[claim] = true
	}
	return claims, err
}

func dead(msg *jetstream.RawStreamMsg) Dead {
	d := Dead{
		Seq: msg.Sequence, ID: msg.Header.Get(headerID), Subject: msg.Header.Get(headerSubject),
		Reason: msg.Header.Get(headerReason), ParkedAt: msg.Time, Data: msg.Data, Cut: msg.Header.Get(headerCut) != "",
	}
	// What is not readable was not written by Park; it stays zero.
	d.Delivered, _ = strconv.Atoi(msg.Header.Get(headerDelivered))
	d.At, _ = time.Parse(time.RFC3339Nano, msg.Header.Get(headerTime))
	return d
}

// Resend publishes the parked message seq again where it came from and deletes
// it. Twice at once is stored once. ErrNotFound: there is no such message;
// ErrConflict: it is not whole.
func (q *Queue) Resend(ctx context.Context, seq uint64) error {
	stream, err := q.stream(ctx, StreamDead)
	if err != nil {
		return err
	}
	raw, err := stream.GetMsg(ctx, seq)
	if err != nil {
		return fmt.Errorf("read parked message %d: %w", seq, notFound(err))
	}
	parked := dead(raw)
	if parked.Cut || !strings.HasPrefix(parked.Subject, subjectClaims) {
		return fmt.Errorf("resend parked message %d: %w", seq, seckill.ErrConflict)
	}
	msg := &nats.Msg{Subject: parked.Subject, Data: raw.Data, Header: nats.Header{}}
	for key, values := range raw.Header {
		if !strings.HasPrefix(key, "Seckill-") && !strings.HasPrefix(key, "Nats-") {
			msg.Header[key] = values
		}
	}
	msg.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("%s.resent.%d.%d", parked.ID, seq, raw.Time.UnixNano()))
	_, err = q.js.PublishMsg(ctx, msg)
	if vanished(err) && q.heal(ctx) == nil {
		_, err = q.js.PublishMsg(ctx, msg)
	}
	if err != nil {
		return fmt.Errorf("resend parked message %d: %w", seq, err)
	}
	return q.DropDead(ctx, seq)
}

// DropDead deletes the parked message seq; ErrNotFound if there is none.
func (q *Queue) DropDead(ctx context.Context, seq uint64) error {
	stream, err := q.stream(ctx, StreamDead)
	if err == nil {
		_, err = stream.GetMsg(ctx, seq) // deleting what is not there has many errors
	}
	if err == nil {
		err = stream.DeleteMsg(ctx, seq)
	}
	if err != nil {
		return fmt.Errorf("drop parked message %d: %w", seq, notFound(err))
	}
	return nil
}

// notFound adds the domain's word to the broker's.
func notFound(err error) error {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return fmt.Errorf("%w: %w", seckill.ErrNotFound, err)
	}
	return err
}
