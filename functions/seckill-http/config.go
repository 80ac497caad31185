package seckillhttp

import (
	"errors"
	"time"
)

// Config is what an operator may set of this function.
type Config struct {
	// BatchMax bounds the claims of one script call.
	BatchMax int `envconfig:"CLAIM_BATCH_MAX" default:"256"`
	// QueueMax bounds the claims of one sale that wait for their call; more
	// are answered 503 at once.
	QueueMax int `envconfig:"CLAIM_QUEUE_MAX" default:"8192"`
	// DecideTimeout bounds one script call and so the wait for an answer.
	DecideTimeout time.Duration `envconfig:"CLAIM_TIMEOUT" default:"1500ms"`
	// AckTimeout is how long a 202 waits for the broker to have the claim,
	// too; after it the claim log alone vouches for the claim.
	AckTimeout time.Duration `envconfig:"PUBLISH_ACK_TIMEOUT" default:"100ms"`
	// SoldOutFor is how long a look that found a sale sold out refuses those
	// who come after it; 0 has everyone looked for.
	SoldOutFor time.Duration `envconfig:"SOLD_OUT_FOR" default:"5ms"`
	// WaitMax bounds how long a reader may wait for the result of a claim.
	WaitMax time.Duration `envconfig:"RESULT_WAIT_MAX" default:"30s"`
	// WaitersMax bounds the readers that wait at the same time.
	WaitersMax int `envconfig:"RESULT_WAITERS_MAX" default:"10000"`
}

// Validate refuses what cannot work.
func (c Config) Validate() error {
	switch {
	case c.BatchMax < 1 || c.BatchMax > 512:
		return errors.New("CLAIM_BATCH_MAX: must be 1 to 512")
	case c.QueueMax < c.BatchMax || c.QueueMax > 1_000_000:
		return errors.New("CLAIM_QUEUE_MAX: must be CLAIM_BATCH_MAX to 1000000")
	case c.DecideTimeout < 50*time.Millisecond || c.DecideTimeout > 30*time.Second:
		return errors.New("CLAIM_TIMEOUT: must be 50ms to 30s")
	case c.AckTimeout < 0 || c.AckTimeout > 10*time.Second:
		return errors.New("PUBLISH_ACK_TIMEOUT: must be 0 to 10s")
	case c.SoldOutFor < 0 || c.SoldOutFor > 250*time.Millisecond:
		return errors.New("SOLD_OUT_FOR: must be 0 to 250ms")
	case c.WaitMax < 0 || c.WaitMax > 5*time.Minute:
		return errors.New("RESULT_WAIT_MAX: must be 0 to 5m")
	case c.WaitersMax < 0 || c.WaitersMax > 1_000_000:
		return errors.New("RESULT_WAITERS_MAX: must be 0 to 1000000")
	}
	return nil
}
