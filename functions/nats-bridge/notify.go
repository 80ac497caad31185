package natsbridge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"seckill/shared/events"
	"seckill/shared/payment"
)

// Notifier tells an HTTP receiver, a shop's mailer for example, what happens to
// orders: each event is a post of its own, a CloudEvent in structured JSON,
// signed by Standard Webhooks. It is told again until the receiver answers 2xx
// or the stream forgets the event (after seven days); the receiver knows an
// event that comes twice by its webhook-id.
type Notifier struct {
	config Config
	source Source
	signer *payment.Webhooks
	client *http.Client
	pace   *pace
}

// Notify runs a notifier until ctx ends, if the configuration names a receiver;
// the channel is closed when it is over.
func Notify(ctx context.Context, config Config, source Source) (done <-chan struct{}, err error) {
	over := make(chan struct{})
	if config.NotifyURL == "" {
		close(over)
		return over, nil
	}
	signer, err := payment.NewWebhooks(config.NotifySecret)
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SECRET: %w", err)
	}
	n := &Notifier{config: config, source: source, signer: signer, client: newClient(config), pace: newPace(config.PostsInFlight, config.PostsInFlight)}
	go func() {
		defer close(over)
		n.Run(ctx)
	}()
	return over, nil
}

// Run notifies until ctx ends. Then it finishes the posts that are under way,
// each within Config.PostTimeout, and returns.
func (n *Notifier) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range n.config.PostsInFlight {
		workers.Go(func() {
			for n.pace.enter(ctx) {
				n.round(ctx)
				n.pace.leave()
			}
		})
	}
	workers.Wait()
}

// round moves one event: a post takes less than the ack wait, several might not.
func (n *Notifier) round(ctx context.Context) {
	found, err := n.source.Fetch(ctx, 1, idleWait)
	if err != nil {
		if ctx.Err() == nil {
			slog.Warn("events of orders cannot be fetched", "error", err)
			n.pace.troubled(0)
		}
		return
	}
	for _, d := range found {
		n.tell(context.WithoutCancel(ctx), d)
	}
}

// tell posts one event and answers the queue. Answers that are lost only have
// it told again.
func (n *Notifier) tell(ctx context.Context, d Delivery) {
	parts, err := events.Split(d.Header(), d.Data())
	if err == nil && len(parts) == 1 {
		err = parts[0].Err
	}
	if err != nil || len(parts) != 1 { // nothing that we announced; nobody could read it
		slog.Error("a message of ORDERS is no event", "id", d.ID(), "error", err)
		_ = d.Ack()
		return
	}
	event := parts[0]
	wait, err := n.post(ctx, event.ID, event.Payload)
	if err != nil {
		n.pace.troubled(wait)
		slog.Warn("a notification is not delivered", "target", n.config.NotifyURL, "event", event.ID, "tries", d.Delivered(), "error", err)
		_ = d.Nak(retryIn(d.Delivered(), wait))
		return
	}
	n.pace.succeeded()
	_ = d.Ack()
}

// post returns an error unless the receiver took the event, and for how long it
// wants to be left alone, if it says so.
func (n *Notifier) post(ctx context.Context, id string, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.config.PostTimeout)
	defer cancel()
	header, err := n.signer.Sign(id, time.Now(), body)
	if err != nil {
		return 0, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.config.NotifyURL, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("build a notification: %w", err)
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/cloudevents+json")
	response, err := n.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("post a notification: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing to do about it
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, answerMax))
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return retryAfter(response.Header.Get("Retry-After")), fmt.Errorf("HTTP %d", response.StatusCode)
	}
	return 0, nil
}
