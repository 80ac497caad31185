package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"seckill/scripts/load/drive"
)

// timeline is what happened in each stretch of time.
type timeline struct {
	l     *load
	start time.Time
	// The answers end before the stock, which comes to rest later.
	endAnswers, endStock     context.CancelFunc
	answersDone, stockIsDone sync.WaitGroup

	points []point
	width  time.Duration // of a point
	stocks []stockPoint
}

// point is one stretch of time.
type point struct {
	at     float64 // its end, in seconds since the start
	groups []groupPoint
}

type groupPoint struct {
	rate     float64 // in a second
	p50, p99 time.Duration
}

// stockPoint is the units at one instant.
type stockPoint struct {
	at float64
	units
}

const (
	tick = 200 * time.Millisecond
	// pointsMax bounds the points; beyond it they are made twice as wide.
	pointsMax = 400
)

// startTimeline begins at start, which may be in the future.
func startTimeline(ctx context.Context, l *load, start time.Time) *timeline {
	t := &timeline{l: l, start: start, width: tick}
	answers, endAnswers := context.WithCancel(ctx)
	stock, endStock := context.WithCancel(ctx)
	t.endAnswers, t.endStock = endAnswers, endStock
	t.answersDone.Go(func() { t.watchAnswers(answers) })
	t.stockIsDone.Go(func() { t.watchStock(stock) })
	return t
}

// answered ends the answers' part: every answer is counted then.
func (t *timeline) answered() {
	t.endAnswers()
	t.answersDone.Wait()
}

// stop ends the rest; only then the timeline may be read.
func (t *timeline) stop() {
	t.endStock()
	t.stockIsDone.Wait()
}

func (t *timeline) watchAnswers(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	sums := make([]int64, len(groups()))
	last, said := t.start, time.Now()
	for {
		ended := false
		select {
		case <-ticker.C:
		case <-ctx.Done():
			ended = true
		}
		now := time.Now()
		if now.Before(t.start) && !ended {
			continue
		}
		if ended || now.Sub(last) >= t.width-tick/2 {
			t.cut(now, now.Sub(last), sums)
			last = now
		}
		if ended {
			return
		}
		if now.Sub(said) >= time.Second && now.Sub(t.start) >= time.Second {
			said = now
			t.say(now, sums)
		}
	}
}

func (t *timeline) cut(now time.Time, took time.Duration, sums []int64) {
	hists := t.l.recorder.Cut()
	p := point{at: now.Sub(t.start).Seconds()}
	for i, g := range groups() {
		merged := hdrhistogram.New(1, (10 * time.Minute).Microseconds(), 2)
		for _, kind := range g.kinds {
			merged.Merge(hists[kind])
		}
		sums[i] += merged.TotalCount()
		p.groups = append(p.groups, groupPoint{
			rate: float64(merged.TotalCount()) / max(took.Seconds(), 0.001), p50: quantile(merged, 50), p99: quantile(merged, 99),
		})
	}
	t.points = append(t.points, p)
	if len(t.points) > pointsMax {
		t.points = halved(t.points)
		t.width *= 2
	}
}

// halved joins each two points; a joined p99 is the greater one, which is not
// exact but never too good.
func halved(points []point) []point {
	out := make([]point, 0, len(points)/2+1)
	for i := 0; i < len(points); i += 2 {
		if i+1 == len(points) {
			return append(out, points[i])
		}
		a, b := points[i], points[i+1]
		joined := point{at: b.at}
		for k := range a.groups {
			x, y := a.groups[k], b.groups[k]
			joined.groups = append(joined.groups, groupPoint{(x.rate + y.rate) / 2, max(x.p50, y.p50), max(x.p99, y.p99)})
		}
		out = append(out, joined)
	}
	return out
}

// say prints how far the run is.
func (t *timeline) say(now time.Time, sums []int64) {
	var line strings.Builder
	fmt.Fprintf(&line, "%5.0fs", now.Sub(t.start).Seconds())
	for i, g := range groups() {
		if sums[i] > 0 {
			fmt.Fprintf(&line, "  %s %s", g.name, thousands(sums[i]))
		}
	}
	fmt.Println(line.String())
}

func (t *timeline) watchStock(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	session := t.l.session()
	for {
		u, ok := t.look(ctx, session)
		if at := time.Since(t.start).Seconds(); ok && at >= 0 {
			t.stocks = append(t.stocks, stockPoint{at, u})
		}
		if len(t.stocks) > 2*pointsMax {
			for i := range pointsMax {
				t.stocks[i] = t.stocks[2*i]
			}
			t.stocks = t.stocks[:pointsMax]
			ticker.Reset(2 * tick)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (t *timeline) look(ctx context.Context, session *drive.Session) (units, bool) {
	if t.l.stores == nil {
		stock, ok := t.l.stockSeen(session)
		return units{stock: stock, opened: -1, reserved: -1, available: -1}, ok
	}
	u := t.l.stores.units(ctx, t.l.sale)
	return u, u.stock >= 0 || u.available >= 0
}
