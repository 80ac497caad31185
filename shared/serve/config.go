package serve

import (
	"fmt"
	"log/slog"
	"time"
)

// Config says how a function is served.
type Config struct {
	Port     int        `envconfig:"PORT" default:"8080"`
	LogLevel slog.Level `envconfig:"LOG_LEVEL" default:"info"`
	// InFlightMax bounds the requests worked on at once; more get 429.
	InFlightMax int `envconfig:"IN_FLIGHT_MAX" default:"2048"`
	// DrainDelay is how long requests are still taken after the signal to
	// stop, while /_/health already says no, so that the platform's routers
	// can notice: 0 on Knative, which holds the signal back itself, about 5 s
	// on OpenFaaS.
	DrainDelay time.Duration `envconfig:"DRAIN_DELAY" default:"0s"`
	// ShutdownTimeout bounds the time that requests in flight get to end
	// after that.
	ShutdownTimeout time.Duration `envconfig:"SHUTDOWN_TIMEOUT" default:"10s"`
	// ReadTimeout bounds how long a whole request may take to arrive.
	ReadTimeout time.Duration `envconfig:"READ_TIMEOUT" default:"10s"`
	// WriteTimeout bounds how long an answer may take; a handler that streams
	// moves it with http.ResponseController.
	WriteTimeout time.Duration `envconfig:"WRITE_TIMEOUT" default:"60s"`
}

// Validate refuses values under which nothing would be served.
func (c Config) Validate() error {
	if c.Port < 1 || c.Port > 65535 {
		return fmt.Errorf("PORT: %d is not 1 to 65535", c.Port)
	}
	if c.InFlightMax < 1 || c.InFlightMax > 1_000_000 {
		return fmt.Errorf("IN_FLIGHT_MAX: %d is not 1 to 1000000", c.InFlightMax)
	}
	for _, d := range []struct {
		name     string
		value    time.Duration
		min, max time.Duration
	}{
		{"DRAIN_DELAY", c.DrainDelay, 0, time.Minute},
		{"SHUTDOWN_TIMEOUT", c.ShutdownTimeout, 100 * time.Millisecond, 10 * time.Minute},
		{"READ_TIMEOUT", c.ReadTimeout, 100 * time.Millisecond, 10 * time.Minute},
		{"WRITE_TIMEOUT", c.WriteTimeout, 100 * time.Millisecond, 10 * time.Minute},
	} {
		if d.value < d.min || d.value > d.max {
			return fmt.Errorf("%s: %s is not %s to %s", d.name, d.value, d.min, d.max)
		}
	}
	return nil
}
