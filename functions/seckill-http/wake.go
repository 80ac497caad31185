package seckillhttp

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"seckill/shared/seckill"
)

// Changes tells whoever listens that a sale should be looked at;
// natsqueue.Queue is one.
type Changes interface {
	Changed(ctx context.Context, kind seckill.EventType, id string, version int64) error
}

// Waking returns the same reservations. When they are asked whether a sale is
// known, which happens for one that is not loaded, it is told to changes: the
// sweep that would load it may be resting, since sales that are far from open
// need none.
func Waking(reservations Reservations, changes Changes) Reservations {
	return &waking{Reservations: reservations, changes: changes}
}

type waking struct {
	Reservations
	changes Changes
	told    atomic.Int64 // when, in milliseconds since 1970
}

const (
	// wakeEvery spaces what is told: whoever asks for sales that do not exist
	// must not keep the sweep busy.
	wakeEvery   = 5 * time.Second
	wakeTimeout = time.Second
)

// Known implements Reservations.
func (w *waking) Known(ctx context.Context, sale string) (bool, error) {
	known, err := w.Reservations.Known(ctx, sale)
	last, now := w.told.Load(), time.Now().UnixMilli()
	if err == nil && known && now-last >= wakeEvery.Milliseconds() && w.told.CompareAndSwap(last, now) {
		go w.tell(context.WithoutCancel(ctx), sale)
	}
	return known, err
}

func (w *waking) tell(ctx context.Context, sale string) {
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	// Version 0 is older than any: caches that listen too keep what they have.
	if err := w.changes.Changed(ctx, seckill.EventSaleChanged, sale, 0); err != nil {
		slog.Warn("a sale that is not loaded cannot be told", "sale", sale, "error", err)
	}
}
