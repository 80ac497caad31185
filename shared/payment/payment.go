// Package payment speaks with payment providers: how a payment is started,
// what a provider's callback says, and how the callback proves where it comes
// from.
package payment

import (
	"fmt"
	"regexp"

	"github.com/google/uuid"

	"seckill/shared/seckill"
)

// Started is a payment that waits for the buyer.
type Started struct {
	// ID is the provider's id of the payment.
	ID string
	// URL is where the buyer pays.
	URL string
}

// Status is what a provider says became of a payment.
type Status string

// The statuses of a callback.
const (
	Succeeded Status = "succeeded"
	Failed    Status = "failed"
)

// Callback is the document a provider sends when a payment ended.
type Callback struct {
	Order       string `json:"order"`
	Payment     string `json:"payment"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	Status      Status `json:"status"`
}

var referencePattern = regexp.MustCompile(`^[!-~]{1,64}$`)

// Validate returns a *seckill.FieldError for the first field that no callback
// can have. Whether the amount is the order's is not its question: a wrong
// one is recorded, not refused.
func (c Callback) Validate() error {
	switch {
	case !seckill.ValidClaimID(c.Order):
		return &seckill.FieldError{Field: "order", Detail: "must be a lower-case UUID"}
	case !referencePattern.MatchString(c.Payment):
		return &seckill.FieldError{Field: "payment", Detail: "must be 1 to 64 visible ASCII characters"}
	case !seckill.ValidCurrency(c.Currency):
		return &seckill.FieldError{Field: "currency", Detail: "must be an ISO 4217 code like CNY"}
	case c.Status != Succeeded && c.Status != Failed:
		return &seckill.FieldError{Field: "status", Detail: fmt.Sprintf("must be %s or %s", Succeeded, Failed)}
	}
	return nil
}

// idOf derives a payment's id from its order's, so that starting it again is
// the same payment.
func idOf(order string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("urn:seckill:payment:"+order)).String()
}
