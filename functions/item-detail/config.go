package itemdetail

import (
	"errors"
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
	return nil
}
