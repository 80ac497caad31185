package natsqueue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// patience bounds every wait for something that happens in the background.
const patience = time.Minute

// open opens a queue with its streams in place.
func open(t *testing.T, config natsqueue.Config) *natsqueue.Queue {
	t.Helper()
	if config.PublishTimeout == 0 {
		config.PublishTimeout = patience // the machine may be busy
	}
	q, err := natsqueue.Open(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Log(err)
		}
	})
	if err := q.EnsureStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	return q
}

// raw is a connection that can do what the queue would not.
func raw(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	testenv.Eventually(t, patience, func() error {
		if done() {
			return nil
		}
		return errors.New(what)
	})
}

func claims(sale string, n int) []seckill.AcceptedClaim {
	all := make([]seckill.AcceptedClaim, n)
	for i := range all {
		all[i] = seckill.AcceptedClaim{
			Claim: fmt.Sprintf("0190a6c0-0000-7000-8000-%012x", i), Sale: sale, SKU: "phone-1", Buyer: fmt.Sprintf("b%d", i),
			Quantity: 1, PriceMinor: 100, Currency: "CNY", PayWindowMS: 60_000, Limit: 1, Epoch: 1, Seq: int64(i) + 1,
			AcceptedAt: time.UnixMilli(1_780_000_000_000).UTC(),
		}
	}
	return all
}

// publish publishes and fails the test unless all are stored.
func publish(t *testing.T, q *natsqueue.Queue, all []seckill.AcceptedClaim, attempt string) (duplicates int) {
	t.Helper()
	for i, a := range q.PublishClaims(t.Context(), all, attempt) {
		<-a.Done()
		if a.Err() != nil {
			t.Fatalf("claim %d: %v", i, a.Err())
		}
		if a.Duplicate() {
			duplicates++
		}
	}
	return duplicates
}

// fetch collects exactly n deliveries.
func fetch(t *testing.T, q *natsqueue.Queue, n int) []natsqueue.Delivery {
	t.Helper()
	var all []natsqueue.Delivery
	sub := q.Claims()
	eventually(t, fmt.Sprintf("%d deliveries", n), func() bool {
		got, err := sub.Fetch(t.Context(), n-len(all), 100*time.Millisecond)
		if err != nil {
			t.Log(err)
		}
		all = append(all, got...)
		return len(all) == n
	})
	return all
}
