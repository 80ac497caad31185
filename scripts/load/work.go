package main

import (
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"seckill/scripts/load/drive"
)

var oneUnit = []byte(`{"quantity":1}`)

// claims is the work of whoever comes to claim: arrival n is buyer n, counted
// around when there are fewer buyers.
func (l *load) claims() drive.Work {
	return func(s *drive.Session, n int64) drive.Outcome { return l.claim(s, n%l.options.buyers) }
}

func (l *load) claim(s *drive.Session, buyer int64) drive.Outcome {
	call := drive.Call{Method: http.MethodPost, Path: l.claimPath, Buyer: buyer, Body: oneUnit}
	if l.options.keys {
		call.Headers = [][2]string{{"Idempotency-Key", "load-" + strconv.FormatInt(buyer, 10)}}
	}
	status, ok := l.do(s, &call)
	if !ok {
		return drive.Outcome{Kind: kindUnknown, Again: pause("")}
	}
	o := drive.Outcome{Kind: claimKind(status)}
	switch o.Kind {
	case kindWon, kindHeld:
		l.winners.add(s.Body(), buyer)
	case kindNotOpen, kindRate, kindUnknown:
		o.Again = pause(s.Header("Retry-After"))
	}
	return o
}

// do sends a call and notes why it was not answered, or not properly.
func (l *load) do(s *drive.Session, call *drive.Call) (status int, ok bool) {
	status, err := s.Do(call)
	if err != nil {
		l.recorder.Fault(err.Error())
		return 0, false
	}
	if status >= http.StatusInternalServerError {
		l.recorder.Fault(call.Method + " was answered " + strconv.Itoa(status))
	}
	return status, true
}

// pause is how long a buyer waits before asking again: as long as he was told,
// or half a second, and a random part more, as people do.
func pause(retryAfter string) time.Duration {
	wait := 500 * time.Millisecond
	if seconds, err := strconv.Atoi(retryAfter); err == nil && seconds > 0 {
		wait = min(time.Duration(seconds)*time.Second, 30*time.Second)
	}
	return wait + rand.N(wait/2)
}

// sellOut sells every unit.
func (l *load) sellOut() error {
	plan := drive.Plan{Count: l.options.units, Conns: min(l.options.conns, 16), TriesMax: 10}
	work := func(s *drive.Session, n int64) drive.Outcome { return l.claim(s, l.options.buyers+n) }
	drive.Run(l.ctx, plan, l.session, drive.NewRecorder(kindNames()...), work)
	return l.ctx.Err()
}

// items is the work of readers.
func (l *load) items() drive.Work {
	return func(s *drive.Session, _ int64) drive.Outcome { return l.readItem(s) }
}

func (l *load) readItem(s *drive.Session) drive.Outcome {
	return l.hope(s, &drive.Call{Method: http.MethodGet, Path: l.itemPath, Buyer: drive.Nobody}, kindItem)
}

// hope sends a call that is meant to be answered 200.
func (l *load) hope(s *drive.Session, call *drive.Call, kind drive.Kind) drive.Outcome {
	status, ok := l.do(s, call)
	switch {
	case ok && status == http.StatusOK:
		return drive.Outcome{Kind: kind}
	case ok:
		return drive.Outcome{Kind: otherKind(status)}
	}
	return drive.Outcome{Kind: kindUnknown}
}

// day is the work of a mixed crowd: of 100 arrivals 70 read the item, 15
// claim, 8 look at their claim, 5 pay and 2 cancel.
func (l *load) day() drive.Work {
	return func(s *drive.Session, n int64) drive.Outcome {
		what := rand.IntN(100)
		if what < 70 {
			return l.readItem(s)
		}
		w, any := l.winners.random()
		if what < 85 || !any {
			return l.claim(s, n%l.options.buyers)
		}
		order := "/orders/" + w.id.String()
		switch {
		case what < 93:
			return l.hope(s, &drive.Call{Method: http.MethodGet, Path: l.claimPath + "/" + w.id.String(), Buyer: w.buyer}, kindStatus)
		case what < 98:
			return l.pay(s, order, w.buyer)
		default:
			return l.hope(s, &drive.Call{Method: http.MethodPost, Path: order + "/cancel", Buyer: w.buyer}, kindCancelled)
		}
	}
}

// pay starts a payment and pays it at the simulated provider, which then
// calls back.
func (l *load) pay(s *drive.Session, order string, buyer int64) drive.Outcome {
	o := l.hope(s, &drive.Call{Method: http.MethodPost, Path: order + "/payment", Buyer: buyer}, kindPaid)
	if o.Kind != kindPaid {
		return o
	}
	page, err := url.Parse(field(s.Body(), "pay_url"))
	if err != nil || page.Path == "" {
		l.recorder.Fault("a started payment names no page")
		return drive.Outcome{Kind: kindUnknown}
	}
	return l.hope(s, &drive.Call{Method: http.MethodPost, Path: page.RequestURI(), Buyer: drive.Nobody}, kindPaid)
}

// field returns a text of a flat JSON document; it is looked for, not parsed,
// to cost little.
func field(document []byte, name string) string {
	_, rest, found := bytes.Cut(document, []byte(`"`+name+`":"`))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte(`"`))
	text := string(value)
	if unquoted, err := strconv.Unquote(`"` + text + `"`); err == nil {
		text = unquoted
	}
	return text
}

// claimOf returns the id of the claim in a claim's document.
func claimOf(document []byte) (uuid.UUID, bool) {
	_, rest, found := bytes.Cut(document, []byte(`"claim":"`))
	if !found || len(rest) < 36 {
		return uuid.UUID{}, false
	}
	id, err := uuid.ParseBytes(rest[:36])
	return id, err == nil
}
