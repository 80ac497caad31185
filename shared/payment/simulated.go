package payment

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"seckill/shared/seckill"
)

// Simulated is a provider without money, for trials and tests: its pay page
// (see ServeHTTP) lets whoever opens it decide whether the payment succeeds.
// It keeps nothing: all it must know later stands, signed, in the pay URL, so
// the function that starts payments and the page may be different processes.
// The zero value can give money back, and nothing else.
type Simulated struct {
	webhooks *Webhooks
	payURL   string
	callback string
	client   *http.Client
	now      func() time.Time
}

// NewSimulated returns a provider whose pay pages are below payURL, an
// absolute URL. Its callbacks go to callbackURL; a process that only starts
// payments may leave that empty.
func NewSimulated(webhooks *Webhooks, payURL, callbackURL string) (*Simulated, error) {
	if !absolute(payURL) || callbackURL != "" && !absolute(callbackURL) {
		return nil, fmt.Errorf("simulated provider: pay URL %q and callback URL %q must be absolute http URLs", payURL, callbackURL)
	}
	return &Simulated{
		webhooks: webhooks,
		payURL:   strings.TrimSuffix(payURL, "/"),
		callback: callbackURL,
		client:   &http.Client{Timeout: callbackTimeout},
		now:      time.Now,
	}, nil
}

func absolute(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Name is how the provider is called in records.
func (s *Simulated) Name() string { return "simulated" }

// Verify returns the id of a callback that this provider signed, else an
// error that wraps ErrUnverified.
func (s *Simulated) Verify(header http.Header, body []byte) (string, error) {
	return s.webhooks.Verify(header, body)
}

// Start returns the payment of an order. It is the same payment each time.
func (s *Simulated) Start(_ context.Context, order seckill.Order) (Started, error) {
	t := ticket{
		order: order.ID, amountMinor: order.AmountMinor, currency: order.Currency, back: "/items/" + order.SKU,
	}
	seal, err := s.seal(t)
	if err != nil {
		return Started{}, fmt.Errorf("start payment of order %s: %w", order.ID, err)
	}
	query := url.Values{
		"order":        {t.order},
		"amount_minor": {strconv.FormatInt(t.amountMinor, 10)},
		"currency":     {t.currency},
		"back":         {t.back},
		"seal":         {seal},
	}
	id := idOf(order.ID)
	return Started{ID: id, URL: s.payURL + "/" + id + "?" + query.Encode()}, nil
}

// Refund gives a payment back: there is no money, so it is done at once.
func (s *Simulated) Refund(ctx context.Context, _ seckill.Refund) (done bool, err error) {
	return ctx.Err() == nil, ctx.Err() //nolint:wrapcheck // it is the caller's own
}

// ticket is what a pay URL says.
type ticket struct {
	order       string
	amountMinor int64
	currency    string
	back        string // the path at which the buyer goes on
}

// seal signs a ticket. The message is dated 1970, so nobody can pass it off
// as a callback.
func (s *Simulated) seal(t ticket) (string, error) {
	body := fmt.Sprintf("%s %d %s %s", t.order, t.amountMinor, t.currency, t.back)
	header, err := s.webhooks.Sign("seal_"+idOf(t.order), time.Unix(0, 0), []byte(body))
	if err != nil {
		return "", err
	}
	return header.Get("webhook-signature"), nil
}

// ticketOf reads the pay URL of a request; ok is false unless Start made it.
func (s *Simulated) ticketOf(r *http.Request) (t ticket, ok bool) {
	query := r.URL.Query()
	amount, err := strconv.ParseInt(query.Get("amount_minor"), 10, 64)
	t = ticket{order: query.Get("order"), amountMinor: amount, currency: query.Get("currency"), back: query.Get("back")}
	if err != nil || !strings.HasSuffix(r.URL.Path, "/"+idOf(t.order)) {
		return t, false
	}
	seal, err := s.seal(t)
	return t, err == nil && subtle.ConstantTimeCompare([]byte(seal), []byte(query.Get("seal"))) == 1
}
