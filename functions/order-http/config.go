package orderhttp

import (
	"errors"
	"net/url"
)

// Config holds the function's own settings.
type Config struct {
	// WebhookSecret is shared with the payment provider, which signs its
	// callbacks with it: "whsec_" and base64, or any text of at least 24 bytes.
	WebhookSecret string `envconfig:"PAYMENT_WEBHOOK_SECRET" secret:"true"`
	// PayURL is where the simulated provider's pay pages are.
	PayURL string `envconfig:"PAYMENT_URL" default:"http://127.0.0.1:8080/pay"`
	// Simulated has the function serve those pages itself, at /pay: whoever
	// opens one decides that an order is paid, without money.
	Simulated bool `envconfig:"PAYMENT_SIMULATED" default:"false"`
}

// Validate refuses what cannot work; the secret's form is checked by its user.
func (c Config) Validate() error {
	if c.WebhookSecret == "" {
		return errors.New("PAYMENT_WEBHOOK_SECRET: required")
	}
	if u, err := url.Parse(c.PayURL); err != nil || u.Host == "" {
		return errors.New("PAYMENT_URL: must be an absolute URL")
	}
	return nil
}
