package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"seckill/scripts/faults/campaign"
	"seckill/scripts/faults/stage"
	"seckill/shared/servers"
)

// programs are the functions as they are, built once.
var programs = sync.OnceValues(func() (map[string]string, error) {
	return stage.Build(context.Background(), stage.Names())
})

// require ends the test unless err is nil: a missing server is a skip at a desk
// and a failure in CI.
func require(t *testing.T, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, servers.ErrMissing) && os.Getenv("CI") != "true":
		t.Skipf("%v: this test did not run", err)
	default:
		t.Fatal(err)
	}
}

// shortRounds reach the crash points on a claim's way, and one fault of each
// kind that loses data or answers.
var shortRounds = [][]string{
	{
		"crash @ seckill-http before claim", "crash @ seckill-http after claim",
		"crash @ seckill-http before publish CLAIMS", "crash @ seckill-http after publish CLAIMS",
		"crash @ nats-bridge after pull", "crash @ nats-bridge before HTTP POST events", "crash @ nats-bridge before ack", "crash @ nats-bridge after ack",
		"crash @ order-consumer before INSERT orders", "crash @ order-consumer before COMMIT UPDATE stock", "crash @ order-consumer after COMMIT UPDATE stock",
		"crash @ order-consumer before settle", "crash @ order-consumer after settle",
		"crash @ order-http before COMMIT UPDATE stock", "crash @ order-http after COMMIT UPDATE stock",
		"crash @ order-http before restock", "crash @ order-http after restock", "crash @ order-http after INSERT payments",
		"crash @ expiry-cron before COMMIT UPDATE stock", "crash @ expiry-cron after COMMIT UPDATE stock",
		"crash @ expiry-cron after restock", "crash @ expiry-cron after publish ORDERS",
		"reply lost: COMMIT", "reply lost: PubAck", "reply lost: restock", "nats store deleted", "stream full", "mysql killed", "events again",
	},
	{
		"redis key deleted", "redis older", "redis flushed", "redis busy", "redis out of memory", "mysql read-only", "mysql other time zone",
		"mysql few connections", "redis empty", "functions all at once", "way cut", "gateway loses answers", "pause function @ order-consumer", "redis killed",
	},
}

// TestLawsHoldUnderFaults is a short campaign; go run ./scripts/faults runs as
// long a one as is wanted.
func TestLawsHoldUnderFaults(t *testing.T) {
	t.Parallel()
	built, err := programs()
	require(t, err)
	var out bytes.Buffer
	r, err := campaign.Run(t.Context(), campaign.Options{Seed: 11, Rounds: shortRounds, Programs: built, Out: &out})
	t.Cleanup(func() {
		if t.Failed() || testing.Verbose() {
			t.Log(out.String())
		}
	})
	require(t, err)
	for _, v := range r.Violations {
		t.Error(v)
	}
	for _, missed := range r.Missed {
		t.Errorf("not injected: %s", missed)
	}
}
