package embedded_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"seckill/shared/embedded"
)

func TestNATSKeepsItsStreamsInDir(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	publish := func(url string) *jetstream.PubAck {
		conn, err := nats.Connect(url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		cfg := jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Storage: jetstream.FileStorage}
		if _, err := js.CreateOrUpdateStream(ctx, cfg); err != nil {
			t.Fatal(err)
		}
		ack, err := js.Publish(ctx, "s", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		return ack
	}
	for want := uint64(1); want <= 2; want++ {
		url, stop, err := embedded.NATS(dir)
		if err != nil {
			t.Fatal(err)
		}
		if ack := publish(url); ack.Sequence != want {
			t.Errorf("start %d: sequence %d", want, ack.Sequence)
		}
		stop()
		stop()
	}
}

func TestRedisClockIsTheRealOne(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	addr, stop, err := embedded.Redis()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })

	before := time.Now().Add(-time.Millisecond)
	script := `local t = redis.call('TIME') return t[1] * 1000000 + t[2]`
	micros, err := rdb.Eval(ctx, script, []string{"k"}).Int64()
	if err != nil {
		t.Fatal(err)
	}
	if at := time.UnixMicro(micros); at.Before(before) || at.After(time.Now()) {
		t.Errorf("TIME inside a script is %s, want now (%s)", at, before)
	}
	if err := rdb.Set(ctx, "short", "v", 30*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(ctx, "long", "v", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return rdb.Exists(ctx, "short").Val() == 0 })
	if rdb.Exists(ctx, "long").Val() != 1 {
		t.Error("the key with an hour to live is gone")
	}
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it did not happen within 10 s")
		}
	}
}
