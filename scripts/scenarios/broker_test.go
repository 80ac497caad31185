package scenarios_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func (s *shop) jet() jetstream.JetStream {
	s.t.Helper()
	conn, err := nats.Connect(s.nats.URL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	must(s.t, err)
	s.t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(s.t, err)
	return js
}

// The broker takes nothing, for whatever reason: a claim is still accepted
// once Redis has it, because the claim log vouches for it, and every one of
// them becomes an order when the broker is well.
func TestBrokerTakesNothing(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(*shop) (heal func()){
		"it is killed and loses its store": func(s *shop) func() {
			s.nats.Kill()
			s.nats.Wipe()
			return s.nats.Start
		},
		"it hangs": func(s *shop) func() {
			s.nats.Pause()
			return s.nats.Resume
		},
		"its stream is full": func(s *shop) func() {
			js := s.jet()
			stream, err := js.Stream(s.t.Context(), natsqueue.StreamClaims)
			must(s.t, err)
			config := stream.CachedInfo().Config
			full := config
			full.MaxBytes = 1
			_, err = js.UpdateStream(s.t.Context(), full)
			must(s.t, err)
			return func() {
				_, err := js.UpdateStream(s.t.Context(), config)
				must(s.t, err)
			}
		},
		"its stream is deleted with claims in it": func(s *shop) func() {
			s.win(s.sales[0], "first", 10)
			must(s.t, s.jet().DeleteStream(s.t.Context(), natsqueue.StreamClaims))
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, settings{})
			sale := s.sell(50, 1)
			heal := hurt(s)
			won := s.win(sale, "b", 20)
			for buyer, claim := range won {
				if a := s.status(sale, buyer, claim); a.field("status") != "reserved" {
					t.Errorf("%s: %s", buyer, a.body)
				}
			}
			heal()
			s.deliver(5 * time.Second)
			live := int64(20)
			if name == "its stream is deleted with claims in it" {
				live = 30
			}
			s.rest(sale, live)
			for buyer, claim := range won {
				if a := s.status(sale, buyer, claim); a.field("status") != "ordered" {
					t.Errorf("%s: %s", buyer, a.body)
				}
			}
			if n := s.parked(); n != 0 {
				t.Errorf("%d messages were parked", n)
			}
		})
	}
}

// A claim that is published again after the broker has forgotten it is stored
// and delivered again, and is still one order: the broker's memory only saves
// work.
func TestClaimsComeAgainAfterTheDuplicateWindow(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{nats: natsqueue.Config{AckWait: 2 * time.Second}})
	sale := s.sell(20, 1)
	js := s.jet()
	stream, err := js.Stream(t.Context(), natsqueue.StreamClaims)
	must(t, err)
	config := stream.CachedInfo().Config
	config.Duplicates = 100 * time.Millisecond
	_, err = js.UpdateStream(t.Context(), config)
	must(t, err)
	won := s.win(sale, "b", 10)
	accepted, _, err := s.store.Unsettled(t.Context(), sale, "", 0, 100)
	must(t, err)
	if len(accepted) != 10 {
		t.Fatalf("%d claims in the log", len(accepted))
	}
	again := func() {
		t.Helper()
		for i := range accepted {
			testenv.Eventually(t, patience, func() error {
				ack := s.queue.PublishClaims(t.Context(), accepted[i:i+1], "0")[0]
				<-ack.Done()
				if ack.Duplicate() {
					return errors.New("the broker still remembers")
				}
				return ack.Err()
			})
		}
	}
	again()
	s.deliver(2 * time.Second)
	s.rest(sale, 10)
	s.nats.Kill() // and after a restart of the broker
	s.nats.Start()
	again()
	s.rest(sale, 10)
	testenv.Eventually(t, patience, func() error {
		waiting, _, err := s.queue.Waiting(t.Context())
		if err == nil && waiting != 0 {
			err = fmt.Errorf("%d claims are left", waiting)
		}
		return err
	})
	for buyer, claim := range won {
		if a := s.status(sale, buyer, claim); a.field("status") != "ordered" {
			t.Errorf("%s: %s", buyer, a.body)
		}
	}
	if n := s.parked(); n != 0 {
		t.Errorf("%d messages were parked", n)
	}
}

// Writing an order takes longer than the broker waits for its answer, so
// another replica gets the claim, too: it is one order all the same, and so are
// those of another sale that waited beside it.
func TestWritingTakesLongerThanTheAckWait(t *testing.T) {
	t.Parallel()
	const ackWait = time.Second
	s := newShop(t, settings{nats: natsqueue.Config{AckWait: ackWait}})
	slow, other := s.sell(10, 1), s.sell(30, 1)
	tx, err := s.db().BeginTx(t.Context(), nil)
	must(t, err)
	defer tx.Rollback() //nolint:errcheck // ends the lock if the test failed
	_, err = tx.ExecContext(t.Context(), `UPDATE stock SET seq = seq + 0, version = version + 1 WHERE sale = ?`, slow)
	must(t, err)
	s.deliver(ackWait)
	s.deliver(ackWait)
	won := s.win(slow, "slow", 3)
	testenv.Eventually(t, patience, func() error { // the broker gave up on an answer, several times
		consumer, err := s.jet().Consumer(t.Context(), natsqueue.StreamClaims, natsqueue.Consumer)
		if err == nil && consumer.CachedInfo().NumRedelivered == 0 {
			err = errors.New("nothing is delivered again yet")
		}
		return err
	})
	s.win(other, "other", 20)
	s.rest(other, 20) // its claims do not wait for the lock
	for buyer, claim := range won {
		if a := s.status(slow, buyer, claim); a.field("status") != "reserved" {
			t.Errorf("%s: %s", buyer, a.body)
		}
	}
	must(t, tx.Rollback())
	s.rest(slow, 3)
	if n := s.parked(); n != 0 {
		t.Errorf("%d messages were parked", n)
	}
}

// The sale is gone from MySQL when its claims arrive: each is rejected for its
// buyer to see, its unit is given back, and nobody else's claim suffers.
func TestClaimsOfASaleThatIsGone(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	gone, other := s.sell(10, 1), s.sell(10, 1)
	won, others := s.win(gone, "g", 5), s.win(other, "o", 5)
	for _, table := range []string{"stock WHERE sale", "sales WHERE id"} {
		_, err := s.db().ExecContext(t.Context(), "DELETE FROM "+table+" = ?", gone)
		must(t, err)
	}
	s.deliver(5 * time.Second)
	testenv.Eventually(t, patience, func() error {
		for buyer, claim := range won {
			if a := s.status(gone, buyer, claim); a.field("status") != "rejected" || a.field("reason") != string(seckill.ReasonSaleUnknown) {
				return fmt.Errorf("%s: %d %s", buyer, a.status, a.body)
			}
		}
		return nil
	})
	h, err := s.store.Head(t.Context(), gone)
	must(t, err)
	if h.Stock != 10 || h.Held != 0 || !h.StockOK {
		t.Errorf("the units are not back: %+v", h)
	}
	s.rest(other, 5)
	for buyer, claim := range others {
		if a := s.status(other, buyer, claim); a.field("status") != "ordered" {
			t.Errorf("%s: %s", buyer, a.body)
		}
	}
}

// Redis believes in units that MySQL has sold: who gets one is rejected for all
// to see, no order is written, and Redis ends up with MySQL's number.
func TestRedisBelievesInUnitsThatAreSold(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	sale := s.sell(3, 1)
	s.deliver(5 * time.Second)
	var back []seckill.Return
	for buyer, claim := range s.win(sale, "first", 3) {
		back = append(back, seckill.Return{Claim: claim, Buyer: buyer, Quantity: 1})
	}
	s.rest(sale, 3)
	_, err := s.store.Restock(t.Context(), sale, back)
	must(t, err)
	won := s.win(sale, "second", 3)
	testenv.Eventually(t, patience, func() error {
		for buyer, claim := range won {
			if a := s.status(sale, buyer, claim); a.field("status") != "rejected" || a.field("reason") != string(seckill.ReasonSoldOut) {
				return fmt.Errorf("%s: %s", buyer, a.body)
			}
		}
		return nil
	})
	testenv.Eventually(t, patience, func() error { // the two disagree until a sweep has seen it
		_, err := s.settled(sale, 3)
		return err
	})
	if a := s.claim(t.Context(), sale, "late", ""); a.status != http.StatusConflict || a.field("code") != "sold_out" {
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
	if n := s.parked(); n != 0 {
		t.Errorf("%d messages were parked", n)
	}
}

// A restart of the broker under a running sale, and buyers who ask again until
// they know: nobody gets two claims, nobody who was told "accepted" none.
func TestBrokerRestartsDuringASale(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{nats: natsqueue.Config{AckWait: 2 * time.Second}})
	sale := s.sell(200, 1)
	s.deliver(2 * time.Second)
	var group sync.WaitGroup
	for i := range 60 {
		group.Go(func() {
			buyer := fmt.Sprint("b", i)
			testenv.Eventually(t, patience, func() error {
				if a := s.claim(t.Context(), sale, buyer, "k"); a.status != http.StatusAccepted {
					return fmt.Errorf("%s: %d %s", buyer, a.status, a.body)
				}
				return nil
			})
		})
		if i == 20 {
			s.nats.Kill()
			s.nats.Start()
		}
	}
	group.Wait()
	s.rest(sale, 60)
	if n := s.parked(); n != 0 {
		t.Errorf("%d messages were parked", n)
	}
}
