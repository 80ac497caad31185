// Package events builds and reads the system's CloudEvents: version 1.0 as
// structured JSON on the wire, and any of the three HTTP modes when they come
// in over HTTP.
package events

import (
	"errors"
	"net/http"

	"seckill/shared/seckill"
)

// Media types of events in JSON.
const (
	ContentType      = "application/cloudevents+json"
	BatchContentType = "application/cloudevents-batch+json"
)

// Sources of the system's events; an event is known by its source and id.
const (
	SourceClaims = "/seckill/claims"
	SourceOrders = "/seckill/orders"
	SourceItems  = "/seckill/items"
	SourceSales  = "/seckill/sales"
)

// BatchMax bounds the events of one batch.
const BatchMax = 1000

// Why a request or a message is no event.
var (
	// ErrNotEvent: it is not a CloudEvent in JSON at all (HTTP 415).
	ErrNotEvent = errors.New("not a CloudEvent")
	// ErrMalformed: it says it is a CloudEvent but breaks the format (HTTP 400).
	ErrMalformed = errors.New("malformed CloudEvent")
	// ErrTooLarge: it has too many bytes or events (HTTP 413).
	ErrTooLarge = errors.New("too large")
)

// Event is one CloudEvent as it was read. Data shares memory with what it was
// read from.
type Event struct {
	ID           string
	Source       string
	Type         string
	Subject      string
	PartitionKey string
	TraceParent  string
	// DataType is the attribute datacontenttype; empty means JSON.
	DataType string
	// Data is the payload: a JSON value if DataType is a JSON type.
	Data []byte
	// Err is set when this one event of a batch is malformed (ErrMalformed);
	// the fields above are then what could be read.
	Err error
}

// Read reads the events of an HTTP request in binary, structured or batch
// mode; isBatch tells the last. The body may have at most sizeMax bytes, a
// batch at most BatchMax events. The error wraps ErrNotEvent, ErrMalformed or
// ErrTooLarge; any other error means that the body could not be read. A
// malformed event inside a batch is no error of the batch: see Event.Err.
func Read(r *http.Request, sizeMax int64) (batch []Event, isBatch bool, err error) {
	return nil, false, ErrNotEvent
}

// Claim decodes and validates the data of a seckill.claim.accepted.v1 event.
// The error wraps seckill.ErrInvalid: such an event can never be applied.
func (e Event) Claim() (seckill.AcceptedClaim, error) {
	return seckill.AcceptedClaim{}, seckill.ErrInvalid
}
