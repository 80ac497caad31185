// Package seckill holds the words and rules of a flash sale: what a sale, an
// item, a claim and an order are, which states follow which, and what a buyer
// may be told. It does no I/O; every other package speaks these words.
package seckill

import (
	"fmt"
	"regexp"
	"time"
)

// Limits that hold everywhere, so that a queue, a row or a script never meets
// a value it was not built for.
const (
	// QuantityMax bounds one claim and one buyer's limit in a sale.
	QuantityMax = 100
	// UnitsMax bounds what one sale may put on sale; sums of units stay far
	// below 2^53, the largest integer a Redis script can count exactly.
	UnitsMax = 10_000_000
	// PriceMinorMax bounds a unit price in minor units (10^12: ten thousand
	// million in a currency with two decimals), so that QuantityMax units
	// never overflow an int64.
	PriceMinorMax = 1_000_000_000_000
	// PayWindowMin and PayWindowMax bound the time a buyer has to pay.
	PayWindowMin = time.Second
	PayWindowMax = 7 * 24 * time.Hour
	// SaleLengthMax bounds the time between opening and closing.
	SaleLengthMax = 366 * 24 * time.Hour
	// KeepAfterClose is how long Redis remembers a sale after it closed.
	KeepAfterClose = 24 * time.Hour
	// KeyLengthMax bounds an Idempotency-Key.
	KeyLengthMax = 255
)

var (
	slugPattern     = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	buyerPattern    = regexp.MustCompile(`^[A-Za-z0-9._@:-]{1,64}$`)
	currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)
	claimPattern    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

// ValidSlug reports whether s can be the id of a sale or the SKU of an item:
// 1 to 64 of a-z, 0-9 and the hyphen.
func ValidSlug(s string) bool { return slugPattern.MatchString(s) }

// ValidBuyer reports whether s can be a buyer: 1 to 64 of A-Z, a-z, 0-9 and
// . _ @ : - , compared byte by byte.
func ValidBuyer(s string) bool { return buyerPattern.MatchString(s) }

// ValidClaimID reports whether s can be the id of a claim and of its order: a
// UUID in lower-case text.
func ValidClaimID(s string) bool { return claimPattern.MatchString(s) }

// ValidCurrency reports whether s looks like an ISO 4217 code.
func ValidCurrency(s string) bool { return currencyPattern.MatchString(s) }

// FieldError names the field that made a document unacceptable.
type FieldError struct {
	Field  string
	Detail string
}

// Error implements error.
func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Detail) }

// Unwrap makes every FieldError an ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }

func fieldError(field, format string, args ...any) error {
	return &FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}
