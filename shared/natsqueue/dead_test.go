package natsqueue_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"seckill/shared/events"
	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// inject publishes what our own publisher would not.
func inject(t *testing.T, url string, msg *nats.Msg) {
	t.Helper()
	if _, err := raw(t, url).PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
}

func TestParkedMessageCanBeSentAgain(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	inject(t, url, &nats.Msg{
		Subject: "seckill.claims.s1", Data: []byte("{"),
		Header: nats.Header{"Nats-Msg-Id": {"m1"}, "Nats-Expected-Stream": {"CLAIMS"}, "ce-id": {"1"}},
	})
	d := fetch(t, q, 1)[0]
	for range 2 { // parking twice, as after a lost answer, is storing once
		if err := d.Park(t.Context(), "not\r\nJSON"); err != nil && !strings.Contains(err.Error(), "already") {
			t.Fatal(err)
		}
	}
	eventually(t, "CLAIMS is empty", func() bool { return messages(t, url, natsqueue.StreamClaims) == 0 })
	parked, err := q.Dead(t.Context(), 10)
	if err != nil || len(parked) != 1 {
		t.Fatalf("%d parked (%v), want 1", len(parked), err)
	}
	p := parked[0]
	if p.ID != "m1" || p.Subject != "seckill.claims.s1" || p.Delivered != 1 || string(p.Data) != "{" || p.Cut || p.At.IsZero() || p.ParkedAt.IsZero() {
		t.Errorf("parked %+v", p)
	}
	if !strings.HasPrefix(p.Reason, "not") || !strings.HasSuffix(p.Reason, "JSON") {
		t.Errorf("reason is %q", p.Reason)
	}
	if err := q.Resend(t.Context(), p.Seq); err != nil {
		t.Fatal(err)
	}
	again := fetch(t, q, 1)[0]
	if string(again.Data()) != "{" || again.Header()["ce-id"][0] != "1" || again.Delivered() != 1 {
		t.Errorf("sent again: %q, %v", again.Data(), again.Header())
	}
	if parked, err := q.Dead(t.Context(), 10); err != nil || len(parked) != 0 {
		t.Errorf("%d still parked (%v)", len(parked), err)
	}
}

// One event of a message is parked for itself, once however often, and is a
// message of its own when it is sent again.
func TestPartIsParkedForItself(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	for _, a := range q.PublishBatch(t.Context(), claims("s1", 3)) {
		if <-a.Done(); a.Err() != nil {
			t.Fatal(a.Err())
		}
	}
	d := fetch(t, q, 1)[0]
	parts, err := events.Split(d.Header(), d.Data())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, i := range []int{0, 2} {
			if err := d.ParkPart(t.Context(), i, parts[i].ID, parts[i].Payload, "because"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n, _, err := q.Waiting(t.Context()); err != nil || n != 3 {
		t.Errorf("%d claims wait (%v): the message was answered", n, err)
	}
	if err := d.Ack(); err != nil {
		t.Fatal(err)
	}
	parked, err := q.ParkedClaims(t.Context())
	if err != nil || len(parked) != 2 || !parked[claims("s1", 3)[2].Claim] {
		t.Errorf("parked are %v (%v)", parked, err)
	}
	dead, err := q.Dead(t.Context(), 10)
	if err != nil || len(dead) != 2 || dead[1].Subject != "seckill.claims.s1" || dead[1].Reason != "because" {
		t.Fatalf("parked %+v (%v)", dead, err)
	}
	if err := q.Resend(t.Context(), dead[1].Seq); err != nil {
		t.Fatal(err)
	}
	again := fetch(t, q, 1)[0]
	if one, err := events.Split(again.Header(), again.Data()); err != nil || len(one) != 1 || one[0].ID != parts[2].ID {
		t.Errorf("sent again: %v (%v)", one, err)
	}
}

func TestDeadIsListedInOrderAndBounded(t *testing.T) {
	t.Parallel()
	q := open(t, natsqueue.Config{URL: testenv.NATS(t)})
	if parked, err := q.Dead(t.Context(), 10); err != nil || len(parked) != 0 {
		t.Fatalf("%d parked (%v) at first", len(parked), err)
	}
	publish(t, q, claims("s1", 5), "0")
	for _, d := range fetch(t, q, 5) {
		if err := d.Park(t.Context(), "r"); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.DropDead(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	parked, err := q.Dead(t.Context(), 3)
	if err != nil || len(parked) != 3 || parked[0].Seq != 1 || parked[1].Seq != 3 || parked[2].Seq != 4 {
		t.Errorf("listed %+v (%v), want 1, 3, 4", parked, err)
	}
	for name, err := range map[string]error{
		"resend": q.Resend(t.Context(), 2), "drop": q.DropDead(t.Context(), 2),
		"resend unknown": q.Resend(t.Context(), 99), "drop unknown": q.DropDead(t.Context(), 99),
	} {
		if !errors.Is(err, seckill.ErrNotFound) {
			t.Errorf("%s: %v, want ErrNotFound", name, err)
		}
	}
}

// The largest message the broker takes is parked, too, as far as it fits.
func TestLargeMessageIsParkedCut(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	inject(t, url, &nats.Msg{Subject: "seckill.claims.s1", Data: []byte(strings.Repeat("A", 1<<20))})
	if err := fetch(t, q, 1)[0].Park(t.Context(), strings.Repeat("r", 10_000)); err != nil {
		t.Fatal(err)
	}
	parked, err := q.Dead(t.Context(), 10)
	if err != nil || len(parked) != 1 || !parked[0].Cut || len(parked[0].Data) < 1<<19 || parked[0].ID != "CLAIMS.1" {
		t.Fatalf("parked %d (%v)", len(parked), err)
	}
	if err := q.Resend(t.Context(), parked[0].Seq); !errors.Is(err, seckill.ErrConflict) {
		t.Errorf("resend of half a message: %v, want ErrConflict", err)
	}
}

func TestParkCreatesItsStream(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	publish(t, q, claims("s1", 1), "0")
	d := fetch(t, q, 1)[0]
	if err := raw(t, url).DeleteStream(t.Context(), natsqueue.StreamDead); err != nil {
		t.Fatal(err)
	}
	eventually(t, "parked", func() bool { return d.Park(t.Context(), "r") == nil })
	if n := messages(t, url, natsqueue.StreamDead); n != 1 {
		t.Errorf("%d parked, want 1", n)
	}
}

// A full DEAD refuses, and the original stays where it is.
func TestParkFailsWhenDeadIsFull(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url, DeadBytesMax: 64 << 10})
	inject(t, url, &nats.Msg{Subject: "seckill.claims.s1", Data: []byte(strings.Repeat("A", 100_000))})
	d := fetch(t, q, 1)[0]
	if err := d.Park(t.Context(), "r"); err == nil {
		t.Error("parked in a full stream")
	}
	if err := d.Nak(0); err != nil {
		t.Fatal(err)
	}
	if again := fetch(t, q, 1)[0]; again.Delivered() != 2 {
		t.Errorf("delivered %d times", again.Delivered())
	}
}
