package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"seckill/scripts/load/drive"
	"seckill/shared/seckill"
)

// watchers is how many winners at a time are watched until their order is
// there. They wait for the answer (Prefer: wait), so they cost little.
const watchers = 8

// watchMax bounds how long one winner is watched.
const watchMax = 2 * time.Minute

// watch looks over the shoulder of some winners until the returned function
// is called, which then tells how long they waited from 202 to the result.
func (l *load) watch(ctx context.Context) func() lags {
	ctx, cancel := context.WithCancel(ctx)
	book := newLagBook(time.Now())
	var mu sync.Mutex
	var all sync.WaitGroup
	for range watchers {
		s := l.session()
		all.Go(func() {
			for {
				select {
				case w := <-l.winners.watch:
					if lag, ok := l.resultOf(ctx, s, w); ok {
						mu.Lock()
						book.add(w.at, lag)
						mu.Unlock()
					}
				case <-ctx.Done():
					return
				}
			}
		})
	}
	return func() lags {
		cancel()
		all.Wait()
		return book.lags()
	}
}

// resultOf waits until the claim is no longer reserved.
func (l *load) resultOf(ctx context.Context, s *drive.Session, w told) (time.Duration, bool) {
	for time.Since(w.at) < watchMax && ctx.Err() == nil {
		status, ok := l.statusOf(s, w.winner, "wait=5")
		if ok && status != seckill.ClaimReserved {
			return time.Since(w.at), true
		}
		if !ok { // let it breathe
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	return 0, false
}

// statusOf asks for a claim as its buyer does.
func (l *load) statusOf(s *drive.Session, w winner, prefer string) (seckill.ClaimStatus, bool) {
	call := drive.Call{Method: http.MethodGet, Path: l.claimPath + "/" + w.id.String(), Buyer: w.buyer}
	if prefer != "" {
		call.Headers = [][2]string{{"Prefer", prefer}}
	}
	code, err := s.Do(&call)
	return seckill.ClaimStatus(field(s.Body(), "status")), err == nil && code == http.StatusOK
}

// askedMax bounds the winners that are asked at the end when the stores cannot
// be.
const askedMax = 20_000

// unsettled asks winners, as a buyer would, until each has a result or the
// time is over. It returns how many were asked and how many have none.
func (l *load) unsettled(ctx context.Context, within time.Duration) (asked, left int64) {
	list := l.winners.all()
	step := max(1, len(list)/askedMax)
	deadline := time.Now().Add(within)
	work := func(s *drive.Session, n int64) drive.Outcome {
		status, ok := l.statusOf(s, list[n*int64(step)], "wait=5")
		switch {
		case ok && status != seckill.ClaimReserved:
			return drive.Outcome{Kind: 0}
		case time.Now().After(deadline):
			return drive.Outcome{Kind: 1}
		}
		return drive.Outcome{Kind: 1, Again: 100 * time.Millisecond}
	}
	rec := drive.NewRecorder("settled", "not settled")
	asked = int64(len(list) / step)
	if asked == 0 {
		return 0, 0
	}
	drive.Run(ctx, drive.Plan{Count: asked, Conns: watchers, TriesMax: 1 << 30}, l.session, rec, work)
	rec.Cut()
	return asked, asked - rec.Total(0).TotalCount()
}
