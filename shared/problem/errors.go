package problem

import (
	"errors"
	"net/http"
	"time"

	"seckill/shared/seckill"
)

// What can be wrong with a request before it means anything.
var (
	// ErrUnauthenticated: the request does not prove who sends it.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrTooLarge: the body is longer than it may be.
	ErrTooLarge = errors.New("body too large")
	// ErrContentType: the body is not of a kind that is read here.
	ErrContentType = errors.New("unsupported content type")
)

// retryAfter is when to ask again after trouble of ours.
const retryAfter = time.Second

// Of is the one table from errors to answers. What it does not know is our own
// trouble: 503 unavailable, which claims nothing about the outcome and lets
// nothing of the error out.
func Of(err error) Problem {
	var field *seckill.FieldError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &field):
		return Problem{Status: http.StatusBadRequest, Code: "invalid", Detail: field.Detail, Field: field.Field}
	case errors.Is(err, seckill.ErrInvalid):
		return Problem{Status: http.StatusBadRequest, Code: "invalid", Detail: "the request is malformed"}
	case errors.Is(err, ErrUnauthenticated):
		return Problem{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: "a valid bearer token is required"}
	case errors.Is(err, ErrTooLarge), errors.As(err, &tooLarge):
		return Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: "the body is too large"}
	case errors.Is(err, ErrContentType):
		return Problem{
			Status: http.StatusUnsupportedMediaType, Code: "unsupported_media_type",
			Detail: "the body must be of a content type that is read here, without an encoding",
		}
	}
	return ofState(err)
}

// ofState answers errors about what the request asks for.
func ofState(err error) Problem {
	switch {
	case errors.Is(err, seckill.ErrNotFound):
		return Problem{Status: http.StatusNotFound, Code: "not_found"}
	case errors.Is(err, seckill.ErrConflict):
		return Problem{Status: http.StatusConflict, Code: "conflict", Detail: "the present state does not allow it"}
	case errors.Is(err, seckill.ErrKeyReused):
		return Problem{
			Status: http.StatusUnprocessableEntity, Code: "key_reused",
			Detail: "the Idempotency-Key was used with another request",
		}
	case errors.Is(err, seckill.ErrPending):
		return Problem{
			Status: http.StatusNotFound, Code: "order_pending",
			Detail: "the claim is accepted, its order is not written yet", RetryAfter: retryAfter,
		}
	}
	return Problem{
		Status: http.StatusServiceUnavailable, Code: "unavailable",
		Detail: "the outcome is unknown; ask again, with the same Idempotency-Key if you sent one", RetryAfter: retryAfter,
	}
}
