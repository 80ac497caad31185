package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"seckill/shared/seckill"
)

const (
	secret      = "0123456789abcdef0123456789abcdef"
	otherSecret = "0123456789abcdef0123456789abcdeX"
)

func TestBuyerOfASharedSecretsToken(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{HMACSecret: secret, Issuer: "shop", Audience: "seckill"})
	exp := time.Now().Add(time.Hour).Unix()
	good := map[string]any{"sub": "u1", "exp": exp, "iss": "shop", "aud": []string{"seckill", "x"}}
	with := func(name string, value any) map[string]any {
		claims := map[string]any{name: value}
		for k, v := range good {
			if k != name {
				claims[k] = v
			}
		}
		if value == nil {
			delete(claims, name)
		}
		return claims
	}
	token := sign(t, jwt.SigningMethodHS256, []byte(secret), good, nil)
	for _, c := range []struct {
		name  string
		auth  []string
		buyer string
	}{
		{"good", []string{"Bearer " + token}, "u1"},
		{"any case of the scheme", []string{"bEARER " + token}, "u1"},
		{"nothing", nil, ""},
		{"empty", []string{""}, ""},
		{"no scheme", []string{token}, ""},
		{"other scheme", []string{"Basic " + token}, ""},
		{"two headers", []string{"Bearer " + token, "Bearer " + token}, ""},
		{"two tokens", []string{"Bearer " + token + ", Bearer " + token}, ""},
		{"space behind", []string{"Bearer " + token + " "}, ""},
		{"huge", []string{"Bearer " + strings.Repeat("a", 9000)}, ""},
		{"other secret", bearerOf(t, jwt.SigningMethodHS256, []byte(otherSecret), good), ""},
		{"other algorithm", bearerOf(t, jwt.SigningMethodHS512, []byte(secret), good), ""},
		{"alg none", bearerOf(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, good), ""},
		{"no signature", []string{"Bearer " + token[:strings.LastIndex(token, ".")+1]}, ""},
		{"expired", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("exp", time.Now().Unix()-1)), ""},
		{"no exp", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("exp", nil)), ""},
		{"exp null", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("exp", json.RawMessage("null"))), ""},
		{"not yet valid", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("nbf", exp)), ""},
		{"no sub", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("sub", nil)), ""},
		{"sub is a number", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("sub", 7)), ""},
		{"sub is no buyer", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("sub", "a}{b")), ""},
		{"SUB is not sub", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("SUB", "u2")), "u1"},
		{"other issuer", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("iss", "shop2")), ""},
		{"other audience", bearerOf(t, jwt.SigningMethodHS256, []byte(secret), with("aud", "y")), ""},
		{"critical extension", []string{"Bearer " + sign(t, jwt.SigningMethodHS256, []byte(secret), good, map[string]any{"crit": []string{"x"}})}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // the second time from the cache, if it was good
				got, err := v.Buyer(request(t, "Authorization", c.auth...))
				if got != c.buyer || (c.buyer == "") != errors.Is(err, ErrUnauthenticated) {
					t.Errorf("buyer %q, %v", got, err)
				}
			}
		})
	}
}

func TestBuyerOfAnIssuersToken(t *testing.T) {
	t.Parallel()
	rsaKey, _ := rsa.GenerateKey(rand.Reader, 2048)
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	iss := newIssuer(t)
	iss.publish(t, map[string]crypto.Signer{"r": rsaKey, "e": ecKey, "d": edKey})
	v := newVerifier(t, Config{JWKSURL: iss.url})
	claims := map[string]any{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()}
	public, err := json.Marshal(rsaKey.Public())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		method jwt.SigningMethod
		key    any
		kid    string
		buyer  string
	}{
		{"RS256", jwt.SigningMethodRS256, rsaKey, "r", "u1"},
		{"ES256", jwt.SigningMethodES256, ecKey, "e", "u1"},
		{"EdDSA", jwt.SigningMethodEdDSA, edKey, "d", "u1"},
		{"EdDSA without key id", jwt.SigningMethodEdDSA, edKey, "", "u1"},
		{"a stranger's key", jwt.SigningMethodEdDSA, stranger, "d", ""},
		{"another's key id", jwt.SigningMethodEdDSA, edKey, "e", ""},
		{"PS256 is not offered", jwt.SigningMethodPS256, rsaKey, "r", ""},
		{"the public key as a secret", jwt.SigningMethodHS256, public, "r", ""},
		{"an empty secret", jwt.SigningMethodHS256, []byte{}, "", ""},
		{"alg none", jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "r", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			header := map[string]any{}
			if c.kid != "" {
				header["kid"] = c.kid
			}
			got, err := v.Buyer(request(t, "Authorization", "Bearer "+sign(t, c.method, c.key, claims, header)))
			if got != c.buyer || (c.buyer == "") != errors.Is(err, ErrUnauthenticated) {
				t.Errorf("buyer %q, %v", got, err)
			}
		})
	}
}

// A token whose key we cannot fetch is not refused: nobody knows whether it is
// good. Once the keys can be had it is taken, without a restart.
func TestBuyerIsUnknownWhileTheKeysCannotBeFetched(t *testing.T) {
	t.Parallel()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	iss := newIssuer(t)
	v := newVerifier(t, Config{JWKSURL: iss.url})
	claims := map[string]any{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()}
	r := request(t, "Authorization", "Bearer "+sign(t, jwt.SigningMethodEdDSA, key, claims, map[string]any{"kid": "k"}))
	noID := request(t, "Authorization", "Bearer "+sign(t, jwt.SigningMethodEdDSA, key, claims, nil))
	for _, r := range []*http.Request{noID, r} {
		if got, err := v.Buyer(r); !errors.Is(err, seckill.ErrUnavailable) || errors.Is(err, ErrUnauthenticated) {
			t.Fatalf("buyer %q, %v", got, err)
		}
	}
	iss.publish(t, map[string]crypto.Signer{"k": key})
	// The limit on fetches for unknown key ids has passed.
	fresh := newVerifier(t, Config{JWKSURL: iss.url})
	if got, err := fresh.Buyer(r); got != "u1" || err != nil {
		t.Errorf("buyer %q, %v", got, err)
	}
	iss.publish(t, map[string]crypto.Signer{"k": key, "new": key})
	r = request(t, "Authorization", "Bearer "+sign(t, jwt.SigningMethodEdDSA, key, claims, map[string]any{"kid": "new"}))
	if got, err := fresh.Buyer(r); got != "u1" || err != nil {
		t.Errorf("a key published later: buyer %q, %v", got, err)
	}
	r = request(t, "Authorization", "Bearer "+sign(t, jwt.SigningMethodEdDSA, key, claims, map[string]any{"kid": "invented"}))
	if got, err := fresh.Buyer(r); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("an invented key id: buyer %q, %v", got, err)
	}
}

func TestVerifiedTokenIsBelievedUntilItEnds(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{HMACSecret: secret})
	var ahead atomic.Int64
	v.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	costly := map[string]any{"kid": "1"} // not the header of a token that is verified each time
	short := sign(t, jwt.SigningMethodHS256, []byte(secret), map[string]any{"sub": "u1", "exp": time.Now().Add(time.Minute).Unix()}, costly)
	long := sign(t, jwt.SigningMethodHS256, []byte(secret), map[string]any{"sub": "u2", "exp": time.Now().Add(time.Hour).Unix()}, costly)
	want := func(token, buyer string) {
		t.Helper()
		got, err := v.Buyer(request(t, "Authorization", "Bearer "+token))
		if got != buyer || (buyer == "") != errors.Is(err, ErrUnauthenticated) {
			t.Errorf("buyer %q, %v; want %q", got, err, buyer)
		}
	}
	want(short, "u1")
	want(long, "u2")
	v.secret = []byte(otherSecret) // both are remembered now, whatever the secret is
	want(short, "u1")
	want(long, "u2")
	ahead.Store(int64(2 * time.Minute))
	want(short, "")
	want(long, "u2")
	ahead.Store(int64(6 * time.Minute))
	want(long, "") // verified anew after five minutes, by a secret that is not its own
}

func TestBuyerInATrustedHeader(t *testing.T) {
	t.Parallel()
	token := sign(t, jwt.SigningMethodHS256, []byte(secret), map[string]any{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()}, nil)
	alone, both, off := Config{TrustHeader: "x-buyer"}, Config{TrustHeader: "X-Buyer", HMACSecret: secret}, Config{HMACSecret: secret}
	for _, c := range []struct {
		name   string
		cfg    Config
		header http.Header
		buyer  string
	}{
		{"named", alone, http.Header{"X-Buyer": {"u1"}}, "u1"},
		{"missing", alone, http.Header{}, ""},
		{"empty", alone, http.Header{"X-Buyer": {""}}, ""},
		{"twice", alone, http.Header{"X-Buyer": {"u1", "u1"}}, ""},
		{"two in one", alone, http.Header{"X-Buyer": {"u1, u2"}}, ""},
		{"a token proves nothing here", alone, http.Header{"Authorization": {"Bearer " + token}}, ""},
		{"header of both", both, http.Header{"X-Buyer": {"u1"}}, "u1"},
		{"token of both", both, http.Header{"Authorization": {"Bearer " + token}}, "u1"},
		{"both agree", both, http.Header{"X-Buyer": {"u1"}, "Authorization": {"Bearer " + token}}, "u1"},
		{"both differ", both, http.Header{"X-Buyer": {"u2"}, "Authorization": {"Bearer " + token}}, ""},
		{"a bad token beside the header", both, http.Header{"X-Buyer": {"u1"}, "Authorization": {"Bearer x"}}, ""},
		{"not configured", off, http.Header{"X-Buyer": {"u1"}}, ""},
		{"not configured, beside a token", off, http.Header{"X-Buyer": {"u2"}, "Authorization": {"Bearer " + token}}, "u1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := request(t, "X")
			r.Header = c.header
			got, err := newVerifier(t, c.cfg).Buyer(r)
			if got != c.buyer || (c.buyer == "") != errors.Is(err, ErrUnauthenticated) {
				t.Errorf("buyer %q, %v", got, err)
			}
		})
	}
}

func TestConfigIsRefused(t *testing.T) {
	t.Parallel()
	for _, cfg := range []Config{
		{},
		{Issuer: "x"},
		{HMACSecret: secret[:31]},
		{JWKSURL: "keys.json"},
		{JWKSURL: "file:///keys.json"},
		{HMACSecret: secret, JWKSURL: "://"},
		{TrustHeader: "Authorization"},
		{TrustHeader: "X Buyer"},
		{TrustHeader: "X-Buyer:"},
	} {
		if _, err := New(t.Context(), cfg); err == nil || !strings.HasPrefix(err.Error(), "AUTH_") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestSignMakesWhatBuyerTakes(t *testing.T) {
	t.Parallel()
	token, err := Sign(secret, "u1", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got, err := newVerifier(t, Config{HMACSecret: secret}).Buyer(request(t, "Authorization", "Bearer "+token))
	if got != "u1" || err != nil {
		t.Errorf("buyer %q, %v", got, err)
	}
	for _, bad := range [][2]string{{"short", "u1"}, {secret, ""}, {secret, "a b"}} {
		if _, err := Sign(bad[0], bad[1], time.Minute); err == nil {
			t.Errorf("signed for %q with %q", bad[1], bad[0])
		}
	}
}

// An altered spelling of a good token is another token, not the cached one.
func TestAlteredTokensAreRefused(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{HMACSecret: secret})
	token, err := Sign(secret, "u1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Buyer(request(t, "Authorization", "Bearer "+token)); err != nil {
		t.Fatal(err)
	}
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	parts := strings.Split(token, ".")
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	forged := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(claims), "u1", "u2", 1)))
	for _, bad := range []string{
		parts[0] + "." + forged + "." + parts[2],
		token + "=", token + ".", "." + token, parts[0] + "." + parts[1] + ".." + parts[2],
		token[:len(token)-1] + string(alphabet[strings.IndexByte(alphabet, token[len(token)-1])^1]), // differs in bits that mean nothing
	} {
		if got, err := v.Buyer(request(t, "Authorization", "Bearer "+bad)); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%s: buyer %q, %v", bad, got, err)
		}
	}
}

// A token with a plain header is judged as any other.
func TestPlainHeaderChangesNothing(t *testing.T) {
	t.Parallel()
	v := newVerifier(t, Config{HMACSecret: secret, Issuer: "shop", Audience: "seckill"})
	now := time.Now().Unix()
	for name, c := range map[string]struct {
		change map[string]any
		buyer  string
	}{
		"good":             {nil, "u1"},
		"one audience":     {map[string]any{"aud": "seckill"}, "u1"},
		"more is said":     {map[string]any{"scope": "x", "SUB": "u2", "iat": now}, "u1"},
		"a part of second": {map[string]any{"exp": float64(now) + 3600.5}, "u1"},
		"expired":          {map[string]any{"exp": now - 1}, ""},
		"expired long ago": {map[string]any{"exp": -1e300}, ""},
		"never expires":    {map[string]any{"exp": 1e300}, ""},
		"exp as text":      {map[string]any{"exp": "2999999999"}, "u1"}, // the library is that lenient
		"exp null":         {map[string]any{"exp": nil}, ""},
		"not yet valid":    {map[string]any{"nbf": now + 3600}, ""},
		"other issuer":     {map[string]any{"iss": "shop2"}, ""},
		"other audience":   {map[string]any{"aud": []string{"x"}}, ""},
		"no buyer":         {map[string]any{"sub": "a}{b"}, ""},
	} {
		claims := map[string]any{"sub": "u1", "exp": now + 3600, "iss": "shop", "aud": []string{"seckill", "x"}}
		maps.Copy(claims, c.change)
		token := sign(t, jwt.SigningMethodHS256, []byte(secret), claims, nil)
		if header, _, _ := strings.Cut(token, "."); !slices.Contains(plainHeaders, header) {
			t.Fatalf("%s is not a plain header", header)
		}
		plain, errPlain := v.Buyer(request(t, "Authorization", "Bearer "+token))
		other, errOther := v.Buyer(request(t, "Authorization", "Bearer "+sign(t, jwt.SigningMethodHS256, []byte(secret), claims, map[string]any{"kid": "1"})))
		if plain != c.buyer || (errPlain == nil) != (c.buyer != "") {
			t.Errorf("%s: buyer %q, %v; want %q", name, plain, errPlain, c.buyer)
		}
		if other != plain || (errOther == nil) != (errPlain == nil) {
			t.Errorf("%s: buyer %q, %v; with another header %q, %v", name, plain, errPlain, other, errOther)
		}
	}
}

func BenchmarkBuyer(b *testing.B) {
	v := newVerifier(b, Config{HMACSecret: secret})
	claims := map[string]any{"sub": "u1", "exp": time.Now().Add(time.Hour).Unix()}
	run := func(name string, header map[string]any, before func()) {
		r := request(b, "Authorization", "Bearer "+sign(b, jwt.SigningMethodHS256, []byte(secret), claims, header))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				before()
				if _, err := v.Buyer(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("plain header", nil, func() {})
	run("other header, known", map[string]any{"kid": "1"}, func() {})
	run("other header, new", map[string]any{"kid": "1"}, func() { v.cache.InvalidateAll() })
}

// issuer serves a JWKS document, or an error while it has none.
type issuer struct {
	url  string
	keys atomic.Pointer[[]byte]
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	iss := &issuer{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		keys := iss.keys.Load()
		if keys == nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write(*keys)
	}))
	t.Cleanup(srv.Close)
	iss.url = srv.URL
	return iss
}

func (iss *issuer) publish(t *testing.T, keys map[string]crypto.Signer) {
	t.Helper()
	storage := jwkset.NewMemoryStorage()
	for kid, key := range keys {
		jwk, err := jwkset.NewJWKFromKey(key.Public(), jwkset.JWKOptions{Metadata: jwkset.JWKMetadataOptions{KID: kid}})
		if err != nil {
			t.Fatal(err)
		}
		if err := storage.KeyWrite(t.Context(), jwk); err != nil {
			t.Fatal(err)
		}
	}
	text, err := storage.JSONPublic(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	iss.keys.Store((*[]byte)(&text))
}

func newVerifier(t testing.TB, cfg Config) *Verifier {
	t.Helper()
	v, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func sign(t testing.TB, method jwt.SigningMethod, key any, claims, header map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(method, jwt.MapClaims(claims))
	for name, value := range header {
		token.Header[name] = value
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func bearerOf(t *testing.T, method jwt.SigningMethod, key any, claims map[string]any) []string {
	t.Helper()
	return []string{"Bearer " + sign(t, method, key, claims, nil)}
}

func request(t testing.TB, name string, values ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	for _, value := range values {
		r.Header.Add(name, value)
	}
	return r
}
