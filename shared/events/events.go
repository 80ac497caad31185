// Package events builds and reads the system's CloudEvents: version 1.0 as
// structured JSON on the wire, and any of the three HTTP modes when they come
// in over HTTP.
package events

import (
	"errors"
	"fmt"
	"mime"
	"strings"

	"github.com/go-json-experiment/json"

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

// Event is one CloudEvent as it was read.
type Event struct {
	ID           string
	Source       string
	Type         string
	Subject      string
	PartitionKey string
	TraceParent  string
	// DataType is the attribute datacontenttype; empty means JSON.
	DataType string
	// Data is the payload, decoded from base64 if need be. It is one JSON
	// value if DataType is a JSON type and it did not come as bytes.
	Data []byte
	// Err is set when this one event of a batch is malformed (ErrMalformed);
	// the other fields are then what could be read.
	Err error

	// claim is the data, if the event was read by a scanner.
	claim   seckill.AcceptedClaim
	scanned bool
}

// Claim decodes and validates the data of a seckill.claim.accepted.v1 event.
// Unknown fields are let through, so that a newer sender may add some. The
// error wraps seckill.ErrInvalid: such an event can never be applied.
func (e Event) Claim() (seckill.AcceptedClaim, error) {
	c := e.claim
	if !e.scanned {
		if !isJSON(e.DataType) {
			return c, &seckill.FieldError{Field: "datacontenttype", Detail: "must be a JSON type"}
		}
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return c, fmt.Errorf("decode claim of event %s: %w: %w", e.ID, seckill.ErrInvalid, err)
		}
	}
	if err := c.Validate(); err != nil {
		return c, fmt.Errorf("claim of event %s: %w", e.ID, err)
	}
	if year := c.AcceptedAt.UTC().Year(); year < 1970 || year > 9999 {
		return c, &seckill.FieldError{Field: "accepted_at", Detail: "must be an instant from 1970 to 9999"}
	}
	return c, nil
}

// isJSON reports whether a datacontenttype says that the data is JSON:
// nothing at all, application/json, text/json, or any type that ends in +json.
func isJSON(dataType string) bool {
	if dataType == "" || dataType == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(dataType)
	return err == nil && (media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"))
}
