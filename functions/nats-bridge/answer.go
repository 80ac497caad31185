package natsbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"seckill/shared/seckill"
)

// kind is what an HTTP answer means for its batch.
type kind int

const (
	unavailable kind = iota // ask again later; also whatever is not understood
	denied                  // the same, but an operator has to set something right
	refused                 // something in the batch can never be read
	judged                  // each event has its result
)

// answer is what a target says of a batch.
type answer struct {
	kind       kind
	reason     string
	retryAfter time.Duration         // for unavailable and denied; 0 if not said
	results    []seckill.EventResult // for judged, as many as events
}

// judge reads an HTTP answer: 2xx without a body accepts all, with a body it
// must hold one result for each event; 400, 413, 415 and 422 refuse; 401 and
// 403 deny; all else is trouble of the target or on the way to it (a gateway's
// 404 among it) and will pass.
func judge(resp *http.Response, body []byte, batch []item) answer {
	reason := fmt.Sprintf("HTTP %d: %.200s", resp.StatusCode, bytes.TrimSpace(body))
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		results, err := readResults(body, batch)
		if err != nil {
			return answer{kind: unavailable, reason: err.Error()}
		}
		return answer{kind: judged, results: results}
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge,
		code == http.StatusUnsupportedMediaType, code == http.StatusUnprocessableEntity:
		return answer{kind: refused, reason: reason}
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		return answer{kind: denied, reason: reason}
	default:
		return answer{kind: unavailable, reason: reason, retryAfter: retryAfter(resp.Header.Get("Retry-After"))}
	}
}

// readResults matches the results with the events by their order and id.
func readResults(body []byte, batch []item) ([]seckill.EventResult, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		all := make([]seckill.EventResult, len(batch))
		for i, it := range batch {
			all[i] = seckill.EventResult{ID: it.event, Verdict: seckill.VerdictApplied}
		}
		return all, nil
	}
	var said struct {
		Results []seckill.EventResult `json:"results"`
	}
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, fmt.Errorf("the answer is not understood: %w: %.200s", err, body)
	}
	if len(said.Results) != len(batch) {
		return nil, fmt.Errorf("the answer has %d results for %d events", len(said.Results), len(batch))
	}
	for i, it := range batch {
		if said.Results[i].ID != it.event {
			return nil, fmt.Errorf("result %d is of event %.80q, not %q", i, said.Results[i].ID, it.event)
		}
	}
	return said.Results, nil
}

// retryAfter reads the header in seconds or as a date; 0 if it says nothing.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil {
		return time.Duration(min(max(seconds, 0), int(retryAfterMax/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(time.Until(at), 0), retryAfterMax)
	}
	return 0
}

// apply answers the queue by one event's result.
func (b *Bridge) apply(ctx context.Context, it item, result seckill.EventResult) {
	switch result.Verdict {
	case seckill.VerdictApplied, seckill.VerdictDuplicate, seckill.VerdictRejected, seckill.VerdictIgnored:
		b.answered(it, it.Ack())
	case seckill.VerdictPoison:
		b.poison(ctx, it, result.Reason)
	case seckill.VerdictRetry:
		b.answered(it, it.Nak(retryIn(it.Delivered(), 0)))
	default:
		slog.Warn("a verdict is not understood", "event", it.event, "verdict", result.Verdict)
		b.answered(it, it.Nak(retryIn(it.Delivered(), 0)))
	}
}

const (
	// poisonTries is how often an event must have been found to be poison, or
	// been delivered at all, before it is parked.
	poisonTries    = 3
	poisonRetryIn  = 500 * time.Millisecond
	parkingRetryIn = 30 * time.Second
	retryMin       = 200 * time.Millisecond
	retryMax       = 30 * time.Second
)

// poison parks an event that can never be applied, at its third delivery. When
// it cannot be parked it comes again after a long while.
func (b *Bridge) poison(ctx context.Context, d Delivery, reason string) {
	if d.Delivered() < poisonTries {
		b.answered(d, d.Nak(poisonRetryIn/2+rand.N(poisonRetryIn/2)))
		return
	}
	if err := d.Park(ctx, reason); err != nil {
		slog.Error("poison cannot be parked", "id", d.ID(), "reason", reason, "error", err)
		b.answered(d, d.Nak(parkingRetryIn/2+rand.N(parkingRetryIn/2)))
		return
	}
	slog.Warn("poison is parked", "id", d.ID(), "reason", reason, "delivered", d.Delivered())
}

// answered notes an answer that did not reach the queue: it will deliver the
// event again, which is harmless.
func (b *Bridge) answered(d Delivery, err error) {
	if err != nil {
		slog.Debug("an answer is lost", "id", d.ID(), "error", err)
	}
}

// retryIn spreads the tries of an event: anywhere within a span that doubles
// with each delivery, or after what the target asked for and a little more.
func retryIn(delivered int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return retryAfter + rand.N(retryAfter/2+1)
	}
	span := min(retryMin<<min(max(delivered-1, 0), 10), retryMax)
	return time.Millisecond + rand.N(span)
}
