package natsbridge

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"seckill/shared/events"
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

// readResults matches the results with the events by their order.
func readResults(body []byte, batch []item) ([]seckill.EventResult, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		all := make([]seckill.EventResult, len(batch))
		for i, it := range batch {
			all[i] = seckill.EventResult{ID: it.event, Verdict: seckill.VerdictApplied}
		}
		return all, nil
	}
	return events.ReadResults(body, len(batch))
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

// apply notes one event's result. What is said of another event says nothing
// of this one.
func (b *Bridge) apply(ctx context.Context, it item, result seckill.EventResult) {
	if result.ID != it.event {
		slog.Warn("a result is of another event", "event", it.event, "result", result.ID)
		result.Verdict = seckill.VerdictRetry
	}
	switch result.Verdict {
	case seckill.VerdictApplied, seckill.VerdictDuplicate, seckill.VerdictRejected, seckill.VerdictIgnored:
		b.done(ctx, it)
		return
	case seckill.VerdictPoison:
		b.condemn(ctx, it, result.Reason)
		return
	case seckill.VerdictRetry:
	default:
		slog.Warn("a verdict is not understood", "event", it.event, "verdict", result.Verdict)
	}
	b.retry(ctx, it, retryIn(it.Delivered(), 0))
}

const (
	retryMin = 200 * time.Millisecond
	retryMax = 30 * time.Second
)

// retryIn spreads the tries of an event: anywhere within a span that doubles
// with each delivery, or after what the target asked for and a little more.
func retryIn(delivered int, retryAfter time.Duration) time.Duration {
	if retryAfter > 0 {
		return retryAfter + rand.N(retryAfter/2+1)
	}
	span := min(retryMin<<min(max(delivered-1, 0), 10), retryMax)
	return time.Millisecond + rand.N(span)
}
