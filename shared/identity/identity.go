// Package identity tells which buyer sent a request, from a verified token or,
// where that is configured, from a header that the gateway sets.
package identity

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"
	"github.com/maypok86/otter/v2"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

// ErrUnauthenticated says that the request does not prove which buyer sent it.
var ErrUnauthenticated = problem.ErrUnauthenticated

const (
	tokenMax = 8 << 10 // bytes
	// cachedMax bounds the tokens remembered as verified, about 100 bytes each.
	cachedMax = 65_536
	// cachedFor bounds how long a token is believed after its key was revoked.
	cachedFor = 5 * time.Minute
)

// Verifier tells buyers apart. It may be used concurrently.
type Verifier struct {
	cfg       Config
	secret    []byte
	parser    *jwt.Parser
	validator *jwt.Validator // as the parser's
	keys      *keySet        // nil without a JWKS URL
	cache     *otter.Cache[digest, verified]
	now       func() time.Time
}

// digest stands for a whole token: no two have the same.
type digest [sha256.Size]byte

type verified struct {
	buyer string
	until time.Time
}

// New makes a Verifier. With a JWKS URL it fetches the keys, waiting some
// seconds at most, and again every minute until ctx is done; that they cannot
// be had is no error here but one of Buyer's.
func New(ctx context.Context, cfg Config) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	v := &Verifier{cfg: cfg, secret: []byte(cfg.HMACSecret), now: time.Now}
	var methods []string
	if cfg.HMACSecret != "" {
		methods = append(methods, jwt.SigningMethodHS256.Alg())
	}
	if cfg.JWKSURL != "" {
		methods = append(methods, "RS256", "ES256", "EdDSA")
		keys, err := newKeySet(ctx, cfg.JWKSURL)
		if err != nil {
			return nil, err
		}
		v.keys = keys
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods), jwt.WithExpirationRequired(), jwt.WithStrictDecoding(),
		jwt.WithTimeFunc(func() time.Time { return v.now() }),
	}
	if cfg.Issuer != "" {
		options = append(options, jwt.WithIssuer(cfg.Issuer))
	}
	if cfg.Audience != "" {
		options = append(options, jwt.WithAudience(cfg.Audience))
	}
	v.parser, v.validator = jwt.NewParser(options...), jwt.NewValidator(options...)
	cache, err := otter.New(&otter.Options[digest, verified]{MaximumSize: cachedMax})
	if err != nil {
		return nil, fmt.Errorf("make a cache of tokens: %w", err)
	}
	v.cache = cache
	return v, nil
}

// Buyer returns the verified buyer of r, a seckill.ValidBuyer. An error wraps
// ErrUnauthenticated, or seckill.ErrUnavailable if the keys to verify with
// cannot be had: then nobody knows.
func (v *Verifier) Buyer(r *http.Request) (string, error) {
	trusted, err := v.trusted(r.Header)
	if err != nil {
		return "", err
	}
	if r.Header["Authorization"] == nil || v.cfg.HMACSecret == "" && v.keys == nil {
		if trusted == "" {
			return "", refuse("no token")
		}
		return trusted, nil
	}
	token, err := bearer(r.Header)
	if err != nil {
		return "", err
	}
	buyer, err := v.verify(r.Context(), token)
	if err != nil {
		return "", err
	}
	if trusted != "" && trusted != buyer {
		return "", refuse("header and token name different buyers")
	}
	return buyer, nil
}

// trusted returns the buyer in the trusted header, empty if there is none.
func (v *Verifier) trusted(header http.Header) (string, error) {
	if v.cfg.TrustHeader == "" {
		return "", nil
	}
	values := header.Values(v.cfg.TrustHeader)
	if len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 || !seckill.ValidBuyer(values[0]) {
		return "", refuse("the trusted header names no single buyer")
	}
	return values[0], nil
}

// bearer returns the one token that the request carries.
func bearer(header http.Header) (string, error) {
	values := header["Authorization"]
	if len(values) != 1 {
		return "", refuse("several Authorization headers")
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > tokenMax {
		return "", refuse("no bearer token")
	}
	return token, nil
}

// verify reads a token; what is remembered are those that are costly to verify.
func (v *Verifier) verify(ctx context.Context, token string) (string, error) {
	if buyer, ok := v.plain(token); ok {
		return buyer, nil
	}
	key := digest(sha256.Sum256([]byte(token)))
	if known, ok := v.cache.GetIfPresent(key); ok && v.now().Before(known.until) {
		return known.buyer, nil
	}
	var claims claimSet
	_, err := v.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) { return v.key(ctx, t) })
	switch {
	case errors.Is(err, seckill.ErrUnavailable):
		return "", fmt.Errorf("verify a token: %w", err)
	case err != nil:
		return "", refuse(err.Error())
	case !seckill.ValidBuyer(claims.Subject):
		return "", refuse("its sub is no buyer")
	}
	until := v.now().Add(cachedFor)
	if claims.ExpiresAt.Before(until) {
		until = claims.ExpiresAt.Time
	}
	v.cache.Set(key, verified{buyer: claims.Subject, until: until})
	return claims.Subject, nil
}

// key returns what the token must have been signed with. The secret and the
// public keys never stand in for each other: that would let a public key sign.
func (v *Verifier) key(ctx context.Context, token *jwt.Token) (any, error) {
	if _, ok := token.Header["crit"]; ok {
		return nil, errors.New("it has critical extensions")
	}
	if token.Method == jwt.SigningMethodHS256 {
		return v.secret, nil
	}
	return v.keys.key(ctx, token)
}

// claimSet is read by the exact names: encoding/json would let a claim SUB,
// which a user may be able to set at the issuer, stand in for sub.
type claimSet struct{ jwt.RegisteredClaims }

// UnmarshalJSON implements json.Unmarshaler.
func (c *claimSet) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &c.RegisteredClaims); err != nil {
		return fmt.Errorf("read the claims: %w", err)
	}
	return nil
}

func refuse(why string) error { return fmt.Errorf("%w: %s", ErrUnauthenticated, why) }

// Sign returns an HS256 token that proves buyer to a Verifier with the secret
// for ttl. It is for the local system and tests; tokens come from an issuer.
func Sign(secret, buyer string, ttl time.Duration) (string, error) {
	if len(secret) < secretMin || !seckill.ValidBuyer(buyer) {
		return "", fmt.Errorf("sign a token for %q: the secret must have at least %d bytes and the buyer be valid", buyer, secretMin)
	}
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{
		Subject: buyer, IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(ttl)),
	})
	text, err := token.SignedString([]byte(secret))
	if err != nil {
		return "", fmt.Errorf("sign a token for %q: %w", buyer, err)
	}
	return text, nil
}
