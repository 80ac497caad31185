package natsqueue_test

import (
	"context"
	"testing"

	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

type heard struct {
	kind    seckill.EventType
	id      string
	version int64
}

func listen(t *testing.T, q *natsqueue.Queue) <-chan heard {
	t.Helper()
	all := make(chan heard, 100)
	err := q.OnChanged(t.Context(), func(kind seckill.EventType, id string, version int64) {
		all <- heard{kind, id, version}
	})
	if err != nil {
		t.Fatal(err)
	}
	// The broker knows of the listener once it has answered something later.
	if err := q.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestChangeIsHeardByEveryReplica(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	replicas := []*natsqueue.Queue{open(t, natsqueue.Config{URL: url}), open(t, natsqueue.Config{URL: url})}
	ears := []<-chan heard{listen(t, replicas[0]), listen(t, replicas[1])}
	if err := replicas[0].Changed(t.Context(), seckill.EventItemChanged, "phone-1", 7); err != nil {
		t.Fatal(err)
	}
	if err := replicas[0].Changed(t.Context(), seckill.EventSaleChanged, "s1", 2); err != nil {
		t.Fatal(err)
	}
	for _, ear := range ears {
		if got := next(t, ear); got != (heard{seckill.EventItemChanged, "phone-1", 7}) {
			t.Errorf("heard %+v", got)
		}
		if got := next(t, ear); got != (heard{seckill.EventSaleChanged, "s1", 2}) {
			t.Errorf("heard %+v", got)
		}
	}
}

// hear is what is heard next.
func hear(t *testing.T, ear <-chan heard) heard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	select {
	case got := <-ear:
		return got
	case <-ctx.Done():
		t.Fatalf("nothing is heard within %s", patience)
		return heard{}
	}
}

// next is what is heard of a change, past what may be said at connecting.
func next(t *testing.T, ear <-chan heard) heard {
	t.Helper()
	for {
		if got := hear(t, ear); got != (heard{}) {
			return got
		}
	}
}

// What passed unheard while the connection was away must not stay unknown.
func TestReconnectSaysAnythingMayHaveChanged(t *testing.T) {
	t.Parallel()
	server := testenv.NATSOwn(t)
	q := open(t, natsqueue.Config{URL: server.URL})
	ear := listen(t, q)
	if err := q.Changed(t.Context(), seckill.EventItemChanged, "phone-1", 1); err != nil {
		t.Fatal(err)
	}
	next(t, ear)
	server.Kill()
	if err := q.Changed(t.Context(), seckill.EventItemChanged, "phone-1", 2); err == nil {
		t.Error("a change was told to nobody")
	}
	server.Start()
	if got := hear(t, ear); got != (heard{}) {
		t.Errorf("heard %+v, want that anything may have changed", got)
	}
	eventually(t, "connected again", func() bool {
		return q.Changed(t.Context(), seckill.EventItemChanged, "phone-1", 3) == nil
	})
	if got := next(t, ear); got.version != 3 {
		t.Errorf("heard %+v after the reconnect", got)
	}
}

func TestUnreadableChangeMayBeAnything(t *testing.T) {
	t.Parallel()
	url := testenv.NATS(t)
	q := open(t, natsqueue.Config{URL: url})
	ear := listen(t, q)
	if err := raw(t, url).Conn().Publish("seckill.changed.phone-1", []byte("?")); err != nil {
		t.Fatal(err)
	}
	if got := hear(t, ear); got != (heard{}) {
		t.Errorf("heard %+v", got)
	}
}

func TestListenerEndsWithItsContext(t *testing.T) {
	t.Parallel()
	q := open(t, natsqueue.Config{URL: testenv.NATS(t)})
	ear := listen(t, q)
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	err := q.OnChanged(ctx, func(_ seckill.EventType, id string, _ int64) {
		if id == "after" && ended {
			t.Error("heard after its end")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	eventually(t, "one listener is left", func() bool { return q.Listeners() == 1 })
	ended = true
	if err := q.Changed(t.Context(), seckill.EventItemChanged, "after", 1); err != nil {
		t.Fatal(err)
	}
	next(t, ear)
}
