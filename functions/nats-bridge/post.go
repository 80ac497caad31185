package natsbridge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"seckill/shared/events"
)

const (
	dialTimeout = 5 * time.Second
	idleTimeout = 90 * time.Second
	// answerMax bounds the target's answer: 1000 verdicts with long reasons.
	answerMax = 1 << 20
)

// newClient keeps a connection for each post in flight. It knows no proxy and
// follows no redirect: a POST that became a GET would look delivered.
func newClient(config Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: dialTimeout,
			MaxIdleConnsPerHost: config.PostsInFlight,
			IdleConnTimeout:     idleTimeout,
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// post sends a batch and returns what the target says of it. No answer is an
// answer, too: the target may have done anything, and is asked again.
func (b *Bridge) post(ctx context.Context, batch []item) answer {
	ctx, cancel := context.WithTimeout(ctx, b.config.PostTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.config.Target(), bytes.NewReader(join(batch)))
	if err != nil {
		return answer{kind: unavailable, reason: err.Error()}
	}
	req.Header.Set("Content-Type", events.BatchContentType)
	// Events may be sent twice. The key is not sent: it tells the transport
	// that it may repeat the post on a connection it finds closed.
	req.Header["Idempotency-Key"] = nil
	if b.config.Secret != "" {
		req.Header.Set("Authorization", "Bearer "+b.config.Secret)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		return answer{kind: unavailable, reason: err.Error()}
	}
	defer resp.Body.Close() //nolint:errcheck // it was read as far as it matters
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerMax+1))
	if err == nil && len(body) > answerMax {
		err = fmt.Errorf("the answer has more than %d bytes", answerMax)
	}
	if err != nil {
		return answer{kind: unavailable, reason: err.Error()}
	}
	return judge(resp, body, batch)
}

// join makes one JSON array of the events.
func join(batch []item) []byte {
	size := 2
	for _, it := range batch {
		size += len(it.payload) + 1
	}
	body := append(make([]byte, 0, size), '[')
	for i, it := range batch {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, it.payload...)
	}
	return append(body, ']')
}

// deliver posts a batch and answers each of its events. A batch that the
// target refuses as a whole is cut in halves until what it refuses is alone.
func (b *Bridge) deliver(ctx context.Context, batch []item) {
	a := b.post(ctx, batch)
	switch a.kind {
	case refused:
		b.pace.succeeded()
		if len(batch) > 1 {
			half := len(batch) / 2
			b.deliver(ctx, batch[:half])
			b.deliver(ctx, batch[half:])
			return
		}
		b.condemn(ctx, batch[0], a.reason)
	case judged:
		b.pace.succeeded()
		for i, it := range batch {
			b.apply(ctx, it, a.results[i])
		}
	case unavailable, denied:
		if ctx.Err() != nil { // we are ending; it is not the target's fault
			for _, it := range batch {
				b.retry(ctx, it, 0)
			}
			return
		}
		b.pace.troubled(a.retryAfter)
		level := slog.LevelWarn
		if a.kind == denied {
			level = slog.LevelError
		}
		slog.Log(ctx, level, "events are not delivered", "target", b.config.Target(), "events", len(batch), "reason", a.reason)
		for _, it := range batch {
			b.retry(ctx, it, retryIn(it.Delivered(), a.retryAfter))
		}
	}
}
