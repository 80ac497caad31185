package natsqueue_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/natsqueue"
	"seckill/shared/testenv"
)

func TestFetchTakesWhatIsThere(t *testing.T) {
	t.Parallel()
	q := open(t, natsqueue.Config{URL: testenv.NATS(t)})
	sub := q.Claims()
	if got, err := sub.Fetch(t.Context(), 10, 10*time.Millisecond); err != nil || len(got) != 0 {
		t.Errorf("fetched %d from an empty stream (%v)", len(got), err)
	}
	publish(t, q, claims("s1", 25), "0")
	for _, want := range []int{10, 10, 5} {
		if got, err := sub.Fetch(t.Context(), 10, time.Minute); err != nil || len(got) != want {
			t.Errorf("fetched %d (%v), want %d without waiting", len(got), err, want)
		}
	}
	if waiting, _, err := q.Waiting(t.Context()); err != nil || waiting != 25 {
		t.Errorf("%d claims wait (%v), want the 25 that are not answered", waiting, err)
	}
}

// A fetch that found nothing returns with the first claim that comes.
func TestFetchWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	q := open(t, natsqueue.Config{URL: testenv.NATS(t)})
	got := make(chan []natsqueue.Delivery, 1)
	go func() {
		found, err := q.Claims().Fetch(t.Context(), 10, time.Minute)
		if err != nil {
			t.Error(err)
		}
		got <- found
	}()
	eventually(t, "the fetch waits at the broker", func() bool {
		c, err := raw(t, q.ServerURL()).Consumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer)
		return err == nil && c.CachedInfo().NumWaiting == 1
	})
	publish(t, q, claims("s1", 3), "0")
	if found := <-got; len(found) == 0 {
		t.Error("fetched nothing")
	}
}

func TestAckRemovesAndNakReturns(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	publish(t, q, claims("s1", 3), "0")
	got := fetch(t, q, 3)
	if err := got[0].Ack(); err != nil {
		t.Fatal(err)
	}
	if err := got[1].Nak(0); err != nil {
		t.Fatal(err)
	}
	if err := got[2].Nak(300 * time.Millisecond); err != nil {
		t.Fatal(err)
	}
	again := fetch(t, q, 2)
	if again[0].ID() != got[1].ID() || again[1].ID() != got[2].ID() || again[0].Delivered() != 2 || again[1].Delivered() != 2 {
		t.Errorf("delivered again: %s, %s", again[0].ID(), again[1].ID())
	}
	eventually(t, "the answered claim is gone", func() bool { return messages(t, url, natsqueue.StreamClaims) == 2 })
}

// An unanswered claim comes again after the ack wait, unless progress is told.
func TestUnansweredClaimComesAgain(t *testing.T) {
	t.Parallel()
	q := open(t, natsqueue.Config{URL: testenv.NATS(t), AckWait: time.Second})
	publish(t, q, claims("s1", 2), "0")
	got := fetch(t, q, 2)
	var again []natsqueue.Delivery
	eventually(t, "the other claim comes again", func() bool {
		if err := got[0].InProgress(); err != nil {
			t.Fatal(err)
		}
		found, err := q.Claims().Fetch(t.Context(), 2, 100*time.Millisecond)
		again = append(again, found...)
		return err == nil && len(again) > 0
	})
	if len(again) != 1 || again[0].ID() != got[1].ID() || again[0].Delivered() != 2 {
		t.Errorf("delivered again: %d, first %s", len(again), again[0].ID())
	}
}

func TestClaimsAppliedFollowsTheAnswers(t *testing.T) {
	t.Parallel()
	for name, retention := range map[string]jetstream.RetentionPolicy{
		"work queue": jetstream.WorkQueuePolicy, "limits": jetstream.LimitsPolicy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testenv.NATS(t)
			_, err := raw(t, url).CreateStream(t.Context(), jetstream.StreamConfig{
				Name: natsqueue.StreamClaims, Subjects: []string{"seckill.claims.>"}, Retention: retention,
			})
			if err != nil {
				t.Fatal(err)
			}
			q := open(t, natsqueue.Config{URL: url})
			applied(t, q, 0, true)
			publish(t, q, claims("s1", 4), "0")
			head, err := q.ClaimsHead(t.Context())
			if err != nil || head != 4 {
				t.Fatalf("head is %d (%v), want 4", head, err)
			}
			got := fetch(t, q, 4)
			for _, i := range []int{0, 1, 3} {
				if err := got[i].Ack(); err != nil {
					t.Fatal(err)
				}
			}
			applied(t, q, 2, true)
			applied(t, q, 3, false)
			applied(t, q, head, false)
			if err := got[2].Park(t.Context(), "poison"); err != nil {
				t.Fatal(err)
			}
			applied(t, q, head, true)
			if again, err := q.ClaimsHead(t.Context()); err != nil || again != head {
				t.Errorf("head moved to %d (%v)", again, err)
			}
			applied(t, q, head+100, true) // a stream that was created again
		})
	}
}

func applied(t *testing.T, q *natsqueue.Queue, seq uint64, want bool) {
	t.Helper()
	eventually(t, "applied", func() bool {
		got, err := q.ClaimsApplied(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		return got == want
	})
}

func TestFetchSurvivesALostConsumerAndStream(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	publish(t, q, claims("s1", 2), "0")
	first := fetch(t, q, 1)[0]
	js := raw(t, url)
	if err := js.DeleteConsumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer); err != nil {
		t.Fatal(err)
	}
	// Both are unanswered, so the new consumer delivers both.
	got := fetch(t, q, 2)
	if got[0].ID() != first.ID() || got[0].Delivered() != 1 {
		t.Errorf("delivered %s, %d times", got[0].ID(), got[0].Delivered())
	}
	if err := js.DeleteStream(t.Context(), natsqueue.StreamClaims); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the stream is created by the fetch", func() bool {
		_, err := q.Claims().Fetch(t.Context(), 1, 10*time.Millisecond)
		return err == nil
	})
	publish(t, q, claims("s1", 1), "1")
	fetch(t, q, 1)
}

// A consumer that is deleted while a fetch waits at it is an error, soon.
func TestFetchNoticesThatItsConsumerIsDeleted(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	js := raw(t, url)
	failed := make(chan error, 1)
	go func() {
		_, err := q.Claims().Fetch(t.Context(), 10, time.Hour)
		failed <- err
	}()
	eventually(t, "the fetch waits at the broker", func() bool {
		c, err := js.Consumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer)
		return err == nil && c.CachedInfo().NumWaiting == 1
	})
	if err := js.DeleteConsumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err == nil {
		t.Error("the fetch ended well")
	}
}

func TestFetchGoesOnAfterTheBrokerWasKilled(t *testing.T) {
	t.Parallel()
	server := testenv.NATSOwn(t)
	q := open(t, natsqueue.Config{URL: server.URL})
	publish(t, q, claims("s1", 1), "0")
	server.Kill()
	if _, err := q.Claims().Fetch(t.Context(), 1, 10*time.Millisecond); err == nil {
		t.Error("fetched from a broker that is away")
	}
	server.Start()
	fetch(t, q, 1)
}

// Claims that wait for their next try do not keep others from being delivered.
func TestWaitingClaimsDoNotStarveOthers(t *testing.T) {
	t.Parallel()
	q := open(t, natsqueue.Config{URL: testenv.NATS(t)})
	const waiting = 30_000
	for i := range waiting / 1000 {
		publish(t, q, claims("waiting", 1000), strconv.Itoa(i))
	}
	for _, d := range fetch(t, q, waiting) {
		if err := d.Nak(time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, q, claims("good", 100), "good")
	for _, d := range fetch(t, q, 100) {
		if err := d.Ack(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "only the waiting are unanswered", func() bool {
		unanswered, _, err := q.Waiting(t.Context())
		return err == nil && unanswered == waiting
	})
}

func TestDelaysEndTogether(t *testing.T) {
	t.Parallel()
	now := time.Unix(100, 250_000_000)
	for delay, want := range map[time.Duration]time.Duration{
		1100 * time.Millisecond: 1750 * time.Millisecond,
		1750 * time.Millisecond: 1750 * time.Millisecond,
		30 * time.Second:        30_750 * time.Millisecond,
	} {
		if got := natsqueue.UntilFullSecond(now, delay); got != want {
			t.Errorf("%s becomes %s, want %s", delay, got, want)
		}
	}
}
