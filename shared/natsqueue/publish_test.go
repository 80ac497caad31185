package natsqueue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/events"
	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestPublishedClaimIsStoredAsAnEvent(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	want := claims("s1", 3)
	publish(t, q, want, "0")
	for i, d := range fetch(t, q, 3) {
		if d.ID() != events.ClaimID(want[i].Claim)+".0" || d.Delivered() != 1 || d.Header()["content-type"][0] != events.ContentType {
			t.Errorf("delivery %s, %d times, headers %v", d.ID(), d.Delivered(), d.Header())
		}
		e, err := events.Parse(d.Data())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.Claim(); err != nil || got != want[i] {
			t.Errorf("claim is %+v (%v), want %+v", got, err, want[i])
		}
	}
	msg, err := stream(t, url, natsqueue.StreamClaims).GetLastMsgForSubject(t.Context(), "seckill.claims.s1")
	if err != nil || msg.Sequence != 3 {
		t.Errorf("last message of the sale's subject: %v, %v", msg, err)
	}
}

func stream(t *testing.T, url, name string) jetstream.Stream {
	t.Helper()
	s, err := raw(t, url).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func messages(t *testing.T, url, name string) uint64 {
	t.Helper()
	return stream(t, url, name).CachedInfo().State.Msgs
}

func TestSameAttemptIsStoredOnce(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	all := claims("s1", 5)
	if n := publish(t, q, all, "0"); n != 0 {
		t.Errorf("%d duplicates at first", n)
	}
	if n := publish(t, q, all, "0"); n != 5 {
		t.Errorf("%d duplicates of the same attempt, want 5", n)
	}
	if n := publish(t, q, all[:1], "1"); n != 0 {
		t.Error("another attempt is taken for the same")
	}
	if n := messages(t, url, natsqueue.StreamClaims); n != 6 {
		t.Errorf("%d messages stored, want 6", n)
	}
}

// Claims that were accepted together share messages, and still count one by
// one. The same claims are stored once; one of them in other company is not
// taken for the others' message, which would lose the company.
func TestBatchSharesAMessage(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url, ClaimsPerMessage: 10})
	all := claims("s1", 25)
	batch := func(some []seckill.AcceptedClaim) (duplicates int) {
		for _, a := range q.PublishBatch(t.Context(), some) {
			if <-a.Done(); a.Err() != nil {
				t.Fatal(a.Err())
			}
			if a.Duplicate() {
				duplicates++
			}
		}
		return duplicates
	}
	if n := batch(all); n != 0 {
		t.Errorf("%d duplicates at first", n)
	}
	if n := batch(all); n != 25 {
		t.Errorf("%d duplicates of the same claims, want 25", n)
	}
	if n := batch([]seckill.AcceptedClaim{all[0], all[24]}); n != 0 {
		t.Error("claims in other company are taken for the same")
	}
	if n := messages(t, url, natsqueue.StreamClaims); n != 4 {
		t.Errorf("%d messages stored, want 3 and 1", n)
	}
	if n, _, err := q.Waiting(t.Context()); err != nil || n != 27 {
		t.Errorf("%d claims wait (%v), want 25 and 2", n, err)
	}
	var got []string
	for _, d := range fetch(t, q, 3) {
		parts, err := events.Split(d.Header(), d.Data())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range parts {
			e, err := events.Parse(p.Payload)
			if err != nil {
				t.Fatal(err)
			}
			c, err := e.Claim()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, c.Claim)
		}
	}
	for i, c := range all {
		if got[i] != c.Claim {
			t.Fatalf("claim %d is %s, want %s", i, got[i], c.Claim)
		}
	}
}

// Each claim is answered, and never as stored, while there is no broker.
func TestPublishWithoutBrokerFailsWithinItsBound(t *testing.T) {
	t.Parallel()
	server := testenv.NATSOwn(t)
	q := open(t, natsqueue.Config{URL: server.URL, PublishTimeout: 2 * time.Second})
	server.Kill()
	acks := q.PublishClaims(t.Context(), claims("s1", 100), "0")
	if len(acks) != 100 {
		t.Fatalf("%d acks", len(acks))
	}
	for _, a := range acks {
		<-a.Done()
		if a.Err() == nil || a.Duplicate() {
			t.Fatal("a claim is said to be stored with no broker")
		}
	}
	if err := q.Announce(t.Context(), announcements("s1", 1)); err == nil {
		t.Error("an announcement is said to be stored with no broker")
	}
	if err := q.Ping(t.Context()); err == nil {
		t.Error("ping of a broker that is away succeeds")
	}
	server.Start()
	eventually(t, "connected again", func() bool { return q.Ping(t.Context()) == nil })
	publish(t, q, claims("s1", 100), "1")
	if n := messages(t, server.URL, natsqueue.StreamClaims); n != 100 {
		t.Errorf("%d messages stored, want the 100 of the second attempt", n)
	}
}

// A broker that takes bytes but does not answer, and later takes none, holds
// nobody up.
func TestPublishToAStalledBrokerDoesNotBlock(t *testing.T) {
	t.Parallel()
	server := testenv.NATSOwn(t)
	q := open(t, natsqueue.Config{URL: server.URL, PublishTimeout: 3 * time.Second, PublishPendingMax: 4000})
	server.Pause()
	var acks []natsqueue.Ack
	for i := range 20 {
		acks = append(acks, q.PublishClaims(t.Context(), claims(fmt.Sprintf("s%d", i), 500), "0")...)
	}
	busy := 0
	for _, a := range acks {
		<-a.Done()
		if a.Err() == nil {
			t.Fatal("a claim is said to be stored by a stalled broker")
		}
		if errors.Is(a.Err(), natsqueue.ErrBusy) {
			busy++
		}
	}
	if busy == 0 {
		t.Error("none of 10,000 is refused with 4,000 pending at most")
	}
	server.Resume()
	eventually(t, "published after the stall", func() bool {
		a := q.PublishClaims(t.Context(), claims("after", 1), "1")[0]
		<-a.Done()
		return a.Err() == nil
	})
}

func TestPublishCreatesTheStreamThatVanished(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	publish(t, q, claims("s1", 2), "0")
	for _, name := range []string{natsqueue.StreamClaims, natsqueue.StreamOrders} {
		if err := raw(t, url).DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "claims are stored", func() bool {
		a := q.PublishClaims(t.Context(), claims("s1", 1), "0")[0]
		<-a.Done()
		return a.Err() == nil
	})
	eventually(t, "announcements are stored", func() bool { return q.Announce(t.Context(), announcements("s1", 1)) == nil })
	if n := messages(t, url, natsqueue.StreamClaims); n != 1 {
		t.Errorf("%d messages in the new stream, want 1", n)
	}
	if got := fetch(t, q, 1); got[0].Delivered() != 1 {
		t.Error("the new consumer delivers oddly")
	}
}

func TestFullStreamRefuses(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url, ClaimsBytesMax: 64 << 10})
	stored, refused := 0, 0
	for _, a := range q.PublishClaims(t.Context(), claims("s1", 500), "0") {
		if <-a.Done(); a.Err() == nil {
			stored++
		} else {
			refused++
		}
	}
	if stored == 0 || refused == 0 {
		t.Errorf("%d stored, %d refused, want some of each", stored, refused)
	}
	first := fetch(t, q, 1)[0]
	if first.ID() != events.ClaimID(claims("s1", 1)[0].Claim)+".0" {
		t.Errorf("the oldest claim is %s: the first was discarded", first.ID())
	}
	for _, d := range append(fetch(t, q, stored-1), first) {
		if err := d.Ack(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "answered claims make room", func() bool {
		a := q.PublishClaims(t.Context(), claims("s1", 1), "1")[0]
		<-a.Done()
		return a.Err() == nil
	})
}

func announcements(sale string, n int) []seckill.Announcement {
	all := make([]seckill.Announcement, n)
	for i, c := range claims(sale, n) {
		o := seckill.Order{ID: c.Claim, Sale: sale, SKU: c.SKU, Buyer: c.Buyer, Quantity: 1, Status: seckill.OrderPaid}
		all[i], _ = o.Announce(c.AcceptedAt)
	}
	return all
}

func TestAnnouncementIsStoredOnce(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	for range 2 {
		if err := q.Announce(t.Context(), announcements("s1", 300)); err != nil {
			t.Fatal(err)
		}
	}
	if n := messages(t, url, natsqueue.StreamOrders); n != 300 {
		t.Errorf("%d messages stored, want 300", n)
	}
	msg, err := stream(t, url, natsqueue.StreamOrders).GetMsg(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := announcements("s1", 1)[0]
	if e, err := events.Parse(msg.Data); err != nil || e.ID != want.ID || e.Type != string(want.Type) || msg.Subject != "seckill.orders.s1" {
		t.Errorf("event is %+v (%v) on %s", e, err, msg.Subject)
	}
}

func BenchmarkPublishClaims(b *testing.B) {
	q, err := natsqueue.Open(natsqueue.Config{URL: testenv.NATS(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	if err := q.EnsureStreams(b.Context()); err != nil {
		b.Fatal(err)
	}
	const size = 100
	all := claims("s1", size)
	inFlight := make(chan []natsqueue.Ack, 20)
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for acks := range inFlight {
			for _, a := range acks {
				if <-a.Done(); a.Err() != nil {
					done <- a.Err()
					return
				}
			}
		}
	}()
	round := 0
	for b.Loop() {
		round++
		select {
		case inFlight <- q.PublishClaims(b.Context(), all, fmt.Sprint(round)):
		case err := <-done:
			b.Fatal(err)
		}
	}
	close(inFlight)
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "claims/s")
}
