package ticket

import (
	"errors"
	"fmt"
	"time"
)

// secretMin is the shortest secret in bytes; a shorter one can be guessed from
// one ticket.
const secretMin = 32

// Config says how tickets are given out.
type Config struct {
	// Secret signs tickets and puzzles, the same in every replica. Empty: no
	// ticket is given out and none is genuine, so a sale that asks for one
	// sells nothing here.
	Secret string `envconfig:"TICKET_SECRET" secret:"true"`
	// For is how long a ticket lets its buyer in, and a puzzle may take.
	For time.Duration `envconfig:"TICKET_FOR" default:"5m"`
	// Work is the most hashes that a puzzle takes; half of it on average.
	Work int64 `envconfig:"TICKET_WORK" default:"50000"`
}

// Validate refuses what cannot work.
func (c Config) Validate() error {
	switch {
	case c.Secret != "" && len(c.Secret) < secretMin:
		return fmt.Errorf("TICKET_SECRET: must have at least %d bytes", secretMin)
	case c.For < 10*time.Second || c.For > time.Hour:
		return errors.New("TICKET_FOR: must be 10s to 1h")
	case c.Work < 1000 || c.Work > 10_000_000:
		return errors.New("TICKET_WORK: must be 1000 to 10000000")
	}
	return nil
}
