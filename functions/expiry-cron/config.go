package expirycron

import (
	"errors"
	"fmt"
	"time"
)

// Config is what an operator may set of this function.
type Config struct {
	// Timeout bounds each part of a sweep; what it leaves, the next one does.
	Timeout time.Duration `envconfig:"SWEEP_TIMEOUT" default:"25s"`
	// Batch is how many orders, claims or outbox rows one step handles.
	Batch int `envconfig:"SWEEP_BATCH" default:"500"`
	// RoundsMax bounds the steps of each kind in one sweep.
	RoundsMax int `envconfig:"SWEEP_ROUNDS_MAX" default:"1000"`
	// UnsettledAfter is the age at which a claim that is not settled is
	// published again.
	UnsettledAfter time.Duration `envconfig:"UNSETTLED_AFTER" default:"5s"`
	// OutboxAfter is the age at which work that a function left is taken over.
	OutboxAfter time.Duration `envconfig:"OUTBOX_AFTER" default:"1s"`
	// PrepareAhead is how long before its opening a sale is brought into Redis.
	PrepareAhead time.Duration `envconfig:"PREPARE_AHEAD" default:"8784h"`
	// AwakeAhead is how long before a sale opens no sweep is left out any more,
	// RestAfterClose how long after it closed none is yet.
	AwakeAhead     time.Duration `envconfig:"AWAKE_AHEAD" default:"15m"`
	RestAfterClose time.Duration `envconfig:"REST_AFTER_CLOSE" default:"1h"`
	// RestMax bounds how long a sweep says that none is needed; 0 says never.
	RestMax time.Duration `envconfig:"REST_MAX" default:"15m"`
}

// restMax keeps the registry of sales, which each sweep writes anew, from
// ending while the sweeps rest.
const restMax = time.Hour

// Validate refuses what cannot work.
func (c Config) Validate() error {
	switch {
	case c.Timeout < time.Second || c.Timeout > 10*time.Minute:
		return errors.New("SWEEP_TIMEOUT: must be 1s to 10m")
	case c.Batch < 1 || c.Batch > 500: // a transaction takes no more
		return errors.New("SWEEP_BATCH: must be 1 to 500")
	case c.RoundsMax < 1 || c.RoundsMax > 100_000:
		return errors.New("SWEEP_ROUNDS_MAX: must be 1 to 100000")
	case c.UnsettledAfter < time.Second || c.UnsettledAfter > 10*time.Minute:
		return errors.New("UNSETTLED_AFTER: must be 1s to 10m")
	case c.OutboxAfter < 0 || c.OutboxAfter > time.Minute:
		return errors.New("OUTBOX_AFTER: must be 0 to 1m")
	case c.PrepareAhead < time.Minute || c.PrepareAhead > 10*366*24*time.Hour:
		return errors.New("PREPARE_AHEAD: must be 1m to 87840h")
	case c.AwakeAhead < 0 || c.AwakeAhead > 7*24*time.Hour:
		return errors.New("AWAKE_AHEAD: must be 0 to 168h")
	case c.RestAfterClose < 0 || c.RestAfterClose > 7*24*time.Hour:
		return errors.New("REST_AFTER_CLOSE: must be 0 to 168h")
	case c.RestMax < 0 || c.RestMax > restMax:
		return fmt.Errorf("REST_MAX: must be 0 to %s", restMax)
	case c.RestMax > 0 && c.RestMax+c.AwakeAhead > c.PrepareAhead:
		// A sale that this sweep does not see yet must be seen in time.
		return errors.New("PREPARE_AHEAD: must be at least REST_MAX and AWAKE_AHEAD together")
	}
	return nil
}
