package natsqueue_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/natsqueue"
	"seckill/shared/testenv"
)

func TestStreamsAreCreatedWithTheirLimits(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	if err := q.EnsureStreams(t.Context()); err != nil {
		t.Errorf("a second time: %v", err)
	}
	for name, subject := range map[string]string{"CLAIMS": "seckill.claims.>", "ORDERS": "seckill.orders.>", "DEAD": "seckill.dead.>"} {
		c := stream(t, url, name).CachedInfo().Config
		if len(c.Subjects) != 1 || c.Subjects[0] != subject {
			t.Errorf("%s takes %v, want %s", name, c.Subjects, subject)
		}
		if c.Storage != jetstream.FileStorage || c.Discard != jetstream.DiscardNew || c.MaxBytes <= 0 || c.MaxMsgSize <= 0 || c.Duplicates != 2*time.Minute {
			t.Errorf("%s is %+v", name, c)
		}
		if c.MaxAge != 0 && c.MaxAge < 7*24*time.Hour {
			t.Errorf("%s forgets after %s", name, c.MaxAge)
		}
	}
	c, err := raw(t, url).Consumer(t.Context(), "CLAIMS", "order-consumer")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.CachedInfo().Config; got.AckPolicy != jetstream.AckExplicitPolicy || got.AckWait != 30*time.Second || got.MaxDeliver != -1 {
		t.Errorf("consumer is %+v", got)
	}
}

func TestManyEnsureAtOnce(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			// Each with other limits, as during a rolling upgrade.
			q, err := natsqueue.Open(natsqueue.Config{URL: url, ClaimsBytesMax: int64(i+1) << 20})
			if err != nil {
				t.Error(err)
				return
			}
			defer q.Close() //nolint:errcheck // of no matter here
			if err := q.EnsureStreams(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// What an operator has changed is left alone; what loses claims is reported.
func TestOperatorsSetUpIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	js := raw(t, url)
	config := stream(t, url, natsqueue.StreamClaims).CachedInfo().Config
	config.MaxBytes, config.MaxAge, config.Duplicates = 1<<20, 2*time.Hour, time.Second
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := q.Ping(t.Context()); err != nil {
		t.Errorf("a harmless change: %v", err)
	}
	config.MaxAge = 5 * time.Second
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := q.Ping(t.Context()); !errors.Is(err, natsqueue.ErrUnsafe) {
		t.Errorf("claims that expire unread: %v, want ErrUnsafe", err)
	}
	got := stream(t, url, natsqueue.StreamClaims).CachedInfo().Config
	if got.MaxBytes != 1<<20 || got.MaxAge != 5*time.Second || got.Duplicates != time.Second {
		t.Errorf("the stream was changed to %+v", got)
	}
	config.MaxAge = 0
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	if err := q.Ping(t.Context()); err != nil {
		t.Errorf("after it was set right: %v", err)
	}
}

func TestPingCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	for _, name := range []string{"CLAIMS", "ORDERS", "DEAD"} {
		if err := raw(t, url).DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := messages(t, url, "DEAD"); names != 0 {
		t.Error("DEAD holds messages")
	}
}

// Whoever asks about a stream that vanished finds it created again.
func TestLookingCreatesWhatIsMissing(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	for name, look := range map[string]func() error{
		natsqueue.StreamDead:   func() error { _, err := q.Dead(t.Context(), 1); return err },
		natsqueue.StreamClaims: func() error { _, err := q.ClaimsHead(t.Context()); return err },
	} {
		if err := raw(t, url).DeleteStream(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		eventually(t, name+" is there", func() bool { return look() == nil })
	}
	if err := raw(t, url).DeleteConsumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the consumer is there", func() bool {
		_, _, err := q.Waiting(t.Context())
		return err == nil
	})
}

// The queue opens while the broker is away, and a broker that comes back
// without its streams has them again with no call of ours.
func TestStreamsComeBackWithTheBroker(t *testing.T) {
	t.Parallel()
	server := testenv.NATSOwn(t)
	server.Kill()
	q, err := natsqueue.Open(natsqueue.Config{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close() //nolint:errcheck // of no matter here
	if err := q.Ping(t.Context()); err == nil {
		t.Error("ping of a broker that is away succeeds")
	}
	for range 2 {
		server.Wipe()
		server.Start()
		js := raw(t, server.URL)
		eventually(t, "the consumer is there", func() bool {
			_, err := js.Consumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer)
			return err == nil
		})
		server.Kill()
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	t.Parallel()
	for name, config := range map[string]natsqueue.Config{
		"no URL":        {},
		"replicas":      {URL: "nats://x", Replicas: 7},
		"tiny stream":   {URL: "nats://x", DeadBytesMax: 1},
		"short wait":    {URL: "nats://x", AckWait: time.Millisecond},
		"negative time": {URL: "nats://x", PublishTimeout: -1},
	} {
		if q, err := natsqueue.Open(config); err == nil || q != nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A stream that has just been deleted is not created in the same moment, when
// the broker still puts its files away: it is looked for twice.
func TestWhatVanishedIsNotCreatedAtOnce(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	if err := q.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	asked := make(chan string, 100)
	if _, err := conn.Subscribe("$JS.API.STREAM.*."+natsqueue.StreamClaims, func(m *nats.Msg) { asked <- strings.Split(m.Subject, ".")[3] }); err != nil {
		t.Fatal(err)
	}
	if err := raw(t, url).DeleteStream(t.Context(), natsqueue.StreamClaims); err != nil {
		t.Fatal(err)
	}
	if err := q.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	var looks int
	for {
		switch what := <-asked; what {
		case "INFO":
			looks++
		case "CREATE":
			if looks < 2 {
				t.Errorf("created after %d looks", looks)
			}
			return
		}
	}
}
