package seckillhttp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/seckill"
)

// knowing is Redis without the sale.
type knowing struct {
	seckillhttp.Reservations
	known bool
	err   error
}

func (k knowing) Known(context.Context, string) (bool, error) { return k.known, k.err }

// told is who hears of sales.
type told chan string

func (t told) Changed(_ context.Context, kind seckill.EventType, id string, version int64) error {
	if kind != seckill.EventSaleChanged || version != 0 {
		return errors.New("not what a listener may ignore")
	}
	t <- id
	return nil
}

func TestASaleThatIsNotLoadedIsToldOnce(t *testing.T) {
	t.Parallel()
	heard := make(told, 10)
	w := seckillhttp.Waking(knowing{known: true}, heard)
	for range 5 {
		if known, err := w.Known(t.Context(), "demo"); !known || err != nil {
			t.Fatalf("known: %t, error %v", known, err)
		}
	}
	select {
	case sale := <-heard:
		if sale != "demo" {
			t.Errorf("told of %s", sale)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nobody was told")
	}
	if len(heard) != 0 {
		t.Error("told more than once")
	}
}

func TestSalesThatDoNotExistAreNotTold(t *testing.T) {
	t.Parallel()
	heard, redis := make(told, 10), &knowing{}
	w := seckillhttp.Waking(redis, heard)
	ask := func(sale string, known bool, away error) {
		t.Helper()
		redis.known, redis.err = known, away
		if got, err := w.Known(t.Context(), sale); got != known || !errors.Is(err, away) {
			t.Fatalf("sale %s is known: %t, error %v", sale, got, err)
		}
	}
	ask("none", false, nil)
	ask("unsure", true, errors.New("away"))
	ask("demo", true, nil) // would not be told any more, had one of the others been
	select {
	case sale := <-heard:
		if sale != "demo" {
			t.Errorf("told of %s", sale)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("nobody was told")
	}
}
