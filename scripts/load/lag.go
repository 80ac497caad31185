package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/google/uuid"

	"seckill/shared/seckill"
)

// lags are times from a claim to its order, in microseconds.
type lags struct {
	all    *hdrhistogram.Histogram
	series []lagPoint
}

// lagPoint is the lags of the claims of one second.
type lagPoint struct {
	second        int64 // since the first arrival
	p50, p99, max time.Duration
}

// lagBook gathers lags by the second of the claim.
type lagBook struct {
	start   time.Time
	all     *hdrhistogram.Histogram
	seconds map[int64]*hdrhistogram.Histogram
}

func newLagBook(start time.Time) *lagBook {
	return &lagBook{start: start, all: newLagHistogram(), seconds: map[int64]*hdrhistogram.Histogram{}}
}

const (
	lagMax = time.Hour
	// secondsMax bounds the seconds that are told apart.
	secondsMax = 3600
)

func newLagHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, lagMax.Microseconds(), 2)
}

func (b *lagBook) add(claimed time.Time, lag time.Duration) {
	value := min(max(lag.Microseconds(), 1), lagMax.Microseconds())
	second := min(max(int64(claimed.Sub(b.start)/time.Second), 0), secondsMax)
	if b.seconds[second] == nil {
		b.seconds[second] = newLagHistogram()
	}
	_ = b.all.RecordValue(value) // it is within the bounds
	_ = b.seconds[second].RecordValue(value)
}

func (b *lagBook) lags() lags {
	l := lags{all: b.all}
	for _, second := range slices.Sorted(maps.Keys(b.seconds)) {
		h := b.seconds[second]
		l.series = append(l.series, lagPoint{second, quantile(h, 50), quantile(h, 99), time.Duration(h.Max()) * time.Microsecond})
	}
	return l
}

// quantile is a percentile of a histogram of microseconds.
func quantile(h *hdrhistogram.Histogram, percent float64) time.Duration {
	return time.Duration(h.ValueAtQuantile(percent)) * time.Microsecond
}

// placed is what MySQL says of a sale's orders.
type placed struct {
	known  bool
	orders int64
	// lags are from accepted_at, Redis' clock, to created_at, MySQL's, when
	// the order's transaction began.
	lags lags
	// rate is how many orders landed in a second, from the first claim to the
	// last order.
	rate float64
	// lost counts claims that a buyer was told he has and no order tells of.
	lost int64
}

// orders reads every order of the sale once.
func (s *stores) orders(ctx context.Context, sale string, start time.Time, told map[uuid.UUID]struct{}) (placed, error) {
	p := placed{known: true}
	book := newLagBook(start)
	var first, last time.Time
	found := int64(0)
	_, err := s.mysql.Snapshot(ctx, sale, 1000, func(orders []seckill.Order) error {
		for _, o := range orders {
			p.orders++
			book.add(o.AcceptedAt, o.CreatedAt.Sub(o.AcceptedAt))
			if first.IsZero() || o.AcceptedAt.Before(first) {
				first = o.AcceptedAt
			}
			if o.CreatedAt.After(last) {
				last = o.CreatedAt
			}
			id, err := uuid.Parse(o.ID)
			if err != nil {
				return err
			}
			if _, ok := told[id]; ok {
				found++
			}
		}
		return nil
	})
	p.lags, p.lost = book.lags(), int64(len(told))-found
	if took := last.Sub(first).Seconds(); took > 0 {
		p.rate = float64(p.orders) / took
	}
	return p, err
}
