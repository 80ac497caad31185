package identity

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/time/rate"

	"seckill/shared/seckill"
)

const (
	jwksTimeout  = 3 * time.Second
	jwksInterval = time.Minute
	// jwksUnknown is how often an unknown key id may cause a fetch between
	// the regular ones; anyone can invent key ids.
	jwksUnknown = 10 * time.Second
	jwksMax     = 1 << 20 // bytes
)

// keySet holds the issuer's public keys and knows whether they are current.
type keySet struct {
	keys keyfunc.Keyfunc
	// fresh is false while the last fetch failed.
	fresh *atomic.Bool
}

func newKeySet(ctx context.Context, url string) (*keySet, error) {
	fresh := new(atomic.Bool)
	client := &http.Client{Timeout: jwksTimeout, Transport: watch{fresh: fresh, next: http.DefaultTransport}}
	fetched, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{url}, keyfunc.Override{
		Client: client, HTTPTimeout: jwksTimeout, RefreshInterval: jwksInterval,
		RateLimitWaitMax: jwksTimeout, RefreshUnknownKID: rate.NewLimiter(rate.Every(jwksUnknown), 1),
		RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				fresh.Store(false)
				slog.WarnContext(ctx, "the issuer's keys cannot be fetched", "url", url, "error", err)
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("fetch the keys at %s: %w", url, err)
	}
	keys, err := keyfunc.New(keyfunc.Options{
		Ctx: ctx, Storage: fetched.Storage(), UseWhitelist: []jwkset.USE{jwkset.UseSig, ""},
	})
	if err != nil {
		return nil, fmt.Errorf("use the keys at %s: %w", url, err)
	}
	return &keySet{keys: keys, fresh: fresh}, nil
}

// key returns the key, or keys, that may have signed the token. A key that is
// not there while the keys cannot be fetched is our trouble, not the token's.
func (s *keySet) key(ctx context.Context, token *jwt.Token) (any, error) {
	key, err := s.keys.KeyfuncCtx(ctx)(token)
	if set, ok := key.(jwt.VerificationKeySet); ok && err == nil && len(set.Keys) == 0 {
		err = jwkset.ErrKeyNotFound
	}
	if err == nil {
		return key, nil
	}
	if !s.fresh.Load() {
		return nil, fmt.Errorf("%w: the issuer's keys cannot be fetched: %w", seckill.ErrUnavailable, err)
	}
	return nil, fmt.Errorf("find the token's key: %w", err)
}

// watch notes when a fetch works and bounds what it brings.
type watch struct {
	fresh *atomic.Bool
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w watch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // as the transport beneath says it
	}
	w.fresh.Store(resp.StatusCode == http.StatusOK)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, jwksMax), resp.Body}
	return resp, nil
}
