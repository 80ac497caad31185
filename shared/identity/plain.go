package identity

import (
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/golang-jwt/jwt/v5"

	"seckill/shared/seckill"
)

// plainHeaders are the headers, as they stand in a token, of nearly every token
// that is signed with a shared secret. A token that begins so needs no reading
// of its header, which is half of the work.
var plainHeaders = []string{
	base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)),
	base64.RawURLEncoding.EncodeToString([]byte(`{"typ":"JWT","alg":"HS256"}`)),
}

// strict refuses a second spelling of the same bytes.
var strict = base64.RawURLEncoding.Strict()

// plain returns the buyer of a valid token with a plain header. What it does
// not accept is for the parser to judge: it only ever says yes. Signature and
// claims are checked by the library, as the parser does.
func (v *Verifier) plain(token string) (string, bool) {
	header, rest, _ := strings.Cut(token, ".")
	if v.cfg.HMACSecret == "" || header != plainHeaders[0] && header != plainHeaders[1] {
		return "", false
	}
	payload, signature, _ := strings.Cut(rest, ".")
	signed, err := strict.DecodeString(signature)
	if err != nil || jwt.SigningMethodHS256.Verify(token[:len(header)+1+len(payload)], signed, v.secret) != nil {
		return "", false
	}
	text, err := strict.DecodeString(payload)
	if err != nil {
		return "", false
	}
	var claims plainClaims
	if json.Unmarshal(text, &claims) != nil || v.validator.Validate(&claims) != nil || !seckill.ValidBuyer(claims.Subject) {
		return "", false
	}
	return claims.Subject, true
}

// plainClaims are the registered claims with their instants as the numbers that
// they are.
type plainClaims struct {
	Subject   string           `json:"sub"`
	Issuer    string           `json:"iss"`
	Audience  jwt.ClaimStrings `json:"aud"`
	Expires   *float64         `json:"exp"`
	NotBefore *float64         `json:"nbf"`
	Issued    *float64         `json:"iat"`
}

// Those methods implement jwt.Claims.

func (c *plainClaims) GetSubject() (string, error)                  { return c.Subject, nil }
func (c *plainClaims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c *plainClaims) GetAudience() (jwt.ClaimStrings, error)       { return c.Audience, nil }
func (c *plainClaims) GetExpirationTime() (*jwt.NumericDate, error) { return instant(c.Expires) }
func (c *plainClaims) GetNotBefore() (*jwt.NumericDate, error)      { return instant(c.NotBefore) }
func (c *plainClaims) GetIssuedAt() (*jwt.NumericDate, error)       { return instant(c.Issued) }

// instantMax is the last second of the year 9999; what is later is no instant.
const instantMax = 253_402_300_799

func instant(seconds *float64) (*jwt.NumericDate, error) {
	if seconds == nil {
		return nil, nil //nolint:nilnil // the library's way to say that it is not there
	}
	if *seconds < 0 || *seconds > instantMax {
		return nil, jwt.ErrInvalidType
	}
	return jwt.NewNumericDate(time.Unix(int64(*seconds), 0)), nil
}
