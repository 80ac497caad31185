package seckill

import "errors"

// What a caller may be told. Everything else is our own trouble and is
// answered as "unknown": it must never look like one of these.
var (
	// ErrInvalid: the input is malformed; nothing was changed.
	ErrInvalid = errors.New("invalid")
	// ErrNotFound: there is no such sale, item, claim or order, or it is
	// someone else's (the two are not told apart).
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the sale cannot be decided on now (not loaded, fenced,
	// Redis or MySQL away); asking again later with the same key is right.
	ErrUnavailable = errors.New("temporarily unavailable")
	// ErrConflict: the state of the order does not allow it.
	ErrConflict = errors.New("conflict")
	// ErrKeyReused: the Idempotency-Key was used with another request.
	ErrKeyReused = errors.New("idempotency key used with another request")
	// ErrPending: the claim is accepted but its order is not written yet.
	ErrPending = errors.New("order is not written yet")
	// ErrLost: the data is there but cannot be read as what it should be; it
	// must be built anew.
	ErrLost = errors.New("cannot be read")
	// ErrSuperseded: somebody else is doing this with a newer epoch.
	ErrSuperseded = errors.New("superseded by a newer epoch")
)
