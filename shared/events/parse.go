package events

import (
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// wire is an event in structured JSON. Attributes that are null are unset.
type wire struct {
	SpecVersion  string         `json:"specversion"`
	ID           string         `json:"id"`
	Source       string         `json:"source"`
	Type         string         `json:"type"`
	Subject      string         `json:"subject"`
	Time         string         `json:"time"`
	DataType     string         `json:"datacontenttype"`
	PartitionKey string         `json:"partitionkey"`
	TraceParent  string         `json:"traceparent"`
	Data         jsontext.Value `json:"data"`
	Base64       []byte         `json:"data_base64"`
}

// Parse reads one event in structured JSON. It refuses what two readers could
// understand differently: a key that comes twice, text that is not UTF-8,
// anything behind the object; names are compared byte by byte. The error wraps
// ErrMalformed, and the event then holds what could be read.
func Parse(raw []byte) (Event, error) {
	var w wire
	err := json.Unmarshal(raw, &w)
	if err == nil {
		err = w.check()
	}
	e := w.event()
	if err == nil {
		e.Data, err = w.payload()
	}
	if err != nil {
		return e, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return e, nil
}

func (w *wire) event() Event {
	return Event{
		ID: w.ID, Source: w.Source, Type: w.Type, Subject: w.Subject,
		PartitionKey: w.PartitionKey, TraceParent: w.TraceParent, DataType: w.DataType,
	}
}

// check returns what is wrong with the attributes.
func (w *wire) check() error {
	switch {
	case w.SpecVersion != "1.0":
		return fmt.Errorf("specversion is %.20q, only 1.0 is read", w.SpecVersion)
	case blank(w.ID):
		return errors.New("id is missing")
	case blank(w.Source):
		return errors.New("source is missing")
	case blank(w.Type):
		return errors.New("type is missing")
	}
	if w.Time != "" {
		if _, err := time.Parse(time.RFC3339, strings.ToUpper(w.Time)); err != nil {
			return fmt.Errorf("time %.40q is not RFC 3339", w.Time)
		}
	}
	if w.DataType != "" && w.DataType != "application/json" {
		if _, _, err := mime.ParseMediaType(w.DataType); err != nil {
			return fmt.Errorf("datacontenttype %.80q is no media type", w.DataType)
		}
	}
	return nil
}

// payload returns the data as DataType describes it. It runs when the whole
// object is known: data may stand before the datacontenttype it obeys.
func (w *wire) payload() ([]byte, error) {
	switch {
	case w.Data != nil && w.Base64 != nil:
		return nil, errors.New("data and data_base64 come together")
	case w.Base64 != nil:
		return w.Base64, nil
	case w.Data == nil || isJSON(w.DataType):
		return w.Data, nil
	}
	var text string
	if err := json.Unmarshal(w.Data, &text); err != nil {
		return nil, fmt.Errorf("data of type %.80q is not a string", w.DataType)
	}
	return []byte(text), nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }
