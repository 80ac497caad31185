// Package seckill holds the words and rules of a flash sale: what a sale, an
// item, a claim and an order are, which states follow which, and what a buyer
// may be told. It does no I/O; every other package speaks these words.
package seckill

import (
	"fmt"
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

// ValidSlug reports whether s can be the id of a sale or the SKU of an item:
// 1 to 64 of a-z, 0-9 and the hyphen.
func ValidSlug(s string) bool {
	return consists(s, func(c byte) bool { return isLower(c) || isDigit(c) || c == '-' })
}

// ValidBuyer reports whether s can be a buyer: 1 to 64 of A-Z, a-z, 0-9 and
// . _ @ : - , compared byte by byte.
func ValidBuyer(s string) bool {
	return consists(s, func(c byte) bool {
		return isLower(c) || isUpper(c) || isDigit(c) || c == '.' || c == '_' || c == '@' || c == ':' || c == '-'
	})
}

// ValidClaimID reports whether s can be the id of a claim and of its order: a
// UUID in lower-case text.
func ValidClaimID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (s[i] == '-') || !hyphen && !isDigit(s[i]) && (s[i] < 'a' || s[i] > 'f') {
			return false
		}
	}
	return true
}

// ValidCurrency reports whether s looks like an ISO 4217 code.
func ValidCurrency(s string) bool { return len(s) == 3 && consists(s, isUpper) }

// consists reports whether s has 1 to 64 bytes, all of which are allowed. It is
// on the way of each claim, where a regular expression would show.
func consists(s string, allowed func(byte) bool) bool {
	for i := range len(s) {
		if !allowed(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func isLower(c byte) bool { return c >= 'a' && c <= 'z' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool { return c >= '0' && c <= '9' }

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
