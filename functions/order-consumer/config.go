package orderconsumer

import (
	"errors"
	"time"
)

// Config is what an operator may set of this function.
type Config struct {
	// Secret is the bearer token that the sender of events must show; empty
	// means that whoever reaches the function may send events.
	Secret string `envconfig:"EVENTS_SECRET" secret:"true"`
	// BodyMax bounds a request's body in bytes.
	BodyMax int64 `envconfig:"EVENTS_BODY_MAX" default:"4194304"`
	// BatchMax bounds the claims of one transaction.
	BatchMax int `envconfig:"ORDER_BATCH_MAX" default:"500"`
	// QueueMax bounds the claims that wait for their transaction; more are
	// answered 503 at once, unless they came in one request and nobody waits.
	QueueMax int `envconfig:"ORDER_QUEUE_MAX" default:"20000"`
	// Writers is how many transactions run at the same time.
	Writers int `envconfig:"ORDER_WRITERS" default:"2"`
	// Timeout bounds one transaction together with its settle.
	Timeout time.Duration `envconfig:"ORDER_TIMEOUT" default:"20s"`
}

// Validate refuses what cannot work.
func (c Config) Validate() error {
	switch {
	case c.Secret != "" && len(c.Secret) < 16:
		return errors.New("EVENTS_SECRET: must have at least 16 bytes")
	case c.BodyMax < 1024 || c.BodyMax > 64<<20:
		return errors.New("EVENTS_BODY_MAX: must be 1024 to 67108864")
	case c.BatchMax < 1 || c.BatchMax > 1000:
		return errors.New("ORDER_BATCH_MAX: must be 1 to 1000")
	case c.QueueMax < c.BatchMax || c.QueueMax > 1_000_000:
		return errors.New("ORDER_QUEUE_MAX: must be ORDER_BATCH_MAX to 1000000")
	case c.Writers < 1 || c.Writers > 64:
		return errors.New("ORDER_WRITERS: must be 1 to 64")
	case c.Timeout < 100*time.Millisecond || c.Timeout > 5*time.Minute:
		return errors.New("ORDER_TIMEOUT: must be 100ms to 5m")
	}
	return nil
}
