package itemdetail

import (
	"errors"
	"net/url"
	"strings"
	"time"
)

// Config holds the function's own settings.
type Config struct {
	// CacheBytesMax bounds the texts and rendered documents kept in memory.
	CacheBytesMax uint64 `envconfig:"CACHE_BYTES_MAX" default:"67108864"`
	// SourceTimeout bounds one read of MySQL.
	SourceTimeout time.Duration `envconfig:"SOURCE_TIMEOUT" default:"1s"`
	// SharedTimeout bounds one call of Redis; a page without live stock is
	// better than one that waits.
	SharedTimeout time.Duration `envconfig:"SHARED_TIMEOUT" default:"200ms"`
	// SignInURL is where the page sends a buyer who is not signed in, a path of
	// this origin or an absolute URL; it is given ?back= with the page's path.
	SignInURL string `envconfig:"SIGN_IN_URL"`
}

// Validate refuses what cannot work.
func (c Config) Validate() error {
	if c.CacheBytesMax < 1<<20 {
		return errors.New("CACHE_BYTES_MAX: must be at least 1048576")
	}
	if c.SourceTimeout < 10*time.Millisecond || c.SourceTimeout > 10*time.Second {
		return errors.New("SOURCE_TIMEOUT: must be 10ms to 10s")
	}
	if c.SharedTimeout < 10*time.Millisecond || c.SharedTimeout > time.Second {
		return errors.New("SHARED_TIMEOUT: must be 10ms to 1s")
	}
	if u, err := url.Parse(c.SignInURL); err != nil || c.SignInURL != "" && u.Scheme != "https" && u.Scheme != "http" && !strings.HasPrefix(c.SignInURL, "/") {
		return errors.New("SIGN_IN_URL: must be a path or an http URL")
	}
	return nil
}
