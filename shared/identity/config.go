package identity

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// secretMin is the shortest shared secret, in bytes: HS256 is as strong as its
// key, and shorter ones can be guessed from one token.
const secretMin = 32

// Config says whom to believe. At least one way must be set; with several,
// each request may use any of them.
type Config struct {
	// HMACSecret verifies HS256 tokens.
	HMACSecret string `envconfig:"AUTH_HMAC_SECRET" secret:"true"`
	// JWKSURL is where the keys lie that verify RS256, ES256 and EdDSA tokens.
	JWKSURL string `envconfig:"AUTH_JWKS_URL"`
	// Issuer and Audience, if set, must be the token's iss and among its aud.
	Issuer   string `envconfig:"AUTH_ISSUER"`
	Audience string `envconfig:"AUTH_AUDIENCE"`
	// TrustHeader names a header that holds the buyer; whoever reaches the
	// function can set it, so only a gateway may.
	TrustHeader string `envconfig:"AUTH_TRUST_HEADER"`
}

// Validate refuses a configuration under which nobody or everybody is known.
func (c Config) Validate() error {
	if c.HMACSecret == "" && c.JWKSURL == "" && c.TrustHeader == "" {
		return errors.New("AUTH_HMAC_SECRET, AUTH_JWKS_URL or AUTH_TRUST_HEADER: one of them is required")
	}
	if c.HMACSecret != "" && len(c.HMACSecret) < secretMin {
		return fmt.Errorf("AUTH_HMAC_SECRET: must have at least %d bytes", secretMin)
	}
	if c.JWKSURL != "" {
		u, err := url.Parse(c.JWKSURL)
		if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
			return fmt.Errorf("AUTH_JWKS_URL: %q is not an http or https URL", c.JWKSURL)
		}
	}
	return c.validateHeader()
}

func (c Config) validateHeader() error {
	name := http.CanonicalHeaderKey(c.TrustHeader)
	bad := strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if bad || name == "Authorization" || name == "Cookie" || name == "Host" {
		return fmt.Errorf("AUTH_TRUST_HEADER: %q cannot hold the buyer", c.TrustHeader)
	}
	return nil
}
