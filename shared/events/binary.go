package events

import (
	"bytes"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// prefix marks an attribute among headers. Header names are compared without
// case: HTTP does so, and NATS clients disagree about the case they send.
const prefix = "ce-"

// attributes collects the ce-* headers, without the prefix and in lower case;
// nil if there are none. An attribute that comes twice is malformed.
func attributes(header map[string][]string) (map[string]string, error) {
	var found map[string]string
	for key, values := range header {
		if len(key) <= len(prefix) || !strings.EqualFold(key[:len(prefix)], prefix) {
			continue
		}
		name := strings.ToLower(key[len(prefix):])
		if _, again := found[name]; again || len(values) != 1 {
			return nil, fmt.Errorf("%w: header %s%s comes more than once", ErrMalformed, prefix, name)
		}
		if found == nil {
			found = make(map[string]string, 8)
		}
		found[name] = unescape(values[0])
	}
	return found, nil
}

// unescape undoes the percent-encoding that the HTTP binding asks of header
// values; what is no such encoding is taken as it stands.
func unescape(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}

// binary reads an event whose attributes are headers and whose data is body.
func binary(attrs map[string]string, contentType string, body []byte) (Event, error) {
	w := wire{
		SpecVersion: attrs["specversion"], ID: attrs["id"], Source: attrs["source"], Type: attrs["type"],
		Subject: attrs["subject"], Time: attrs["time"], DataType: contentType,
		PartitionKey: attrs["partitionkey"], TraceParent: attrs["traceparent"],
	}
	e := w.event()
	if err := w.check(); err != nil {
		return e, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	e.Data = body
	return e, nil
}

// Part is one event of a message of another transport.
type Part struct {
	ID string
	// Payload is the event as structured JSON.
	Payload []byte
	// Err is set when this one event of a batch is malformed (ErrMalformed).
	Err error
}

// Split returns the events that a message of another transport carries, ready
// to be posted. header holds the message's headers in any case: a batch is cut
// into its events; with ce-* headers and no CloudEvents content type it is
// binary mode and is rewritten; otherwise data is one event. The error wraps
// ErrNotEvent, ErrMalformed or ErrTooLarge; a malformed event inside a batch is
// no error of the message: see Part.Err.
func Split(header map[string][]string, data []byte) ([]Part, error) {
	contentType := get(header, "content-type")
	mode, err := modeOf(contentType)
	switch {
	case err != nil:
		return nil, err
	case mode == modeBatch:
		return splitBatch(data)
	case mode == modeOther:
		attrs, err := attributes(header)
		if err != nil {
			return nil, err
		}
		if attrs != nil {
			payload, e, err := restructure(attrs, contentType, data)
			return []Part{{ID: e.ID, Payload: payload}}, err
		}
	}
	s := newScanner(data)
	if e, ok := s.claim(); ok && s.at == len(data) {
		return []Part{{ID: e.ID, Payload: data}}, nil
	}
	e, err := Parse(data)
	return []Part{{ID: e.ID, Payload: data}}, err
}

func splitBatch(data []byte) ([]Part, error) {
	if parts, ok := scanParts(data); ok {
		return parts, nil
	}
	var parts []Part
	err := eachOf(data, func(raw []byte) error {
		e, err := Parse(raw)
		parts = append(parts, Part{ID: e.ID, Payload: bytes.Clone(raw), Err: err})
		return nil
	})
	if err == nil && len(parts) == 0 {
		err = fmt.Errorf("%w: the batch is empty", ErrMalformed)
	}
	return parts, err
}

// restructure turns an event in binary mode into structured JSON.
func restructure(attrs map[string]string, contentType string, data []byte) ([]byte, Event, error) {
	e, err := binary(attrs, contentType, data)
	if err != nil {
		return nil, e, err
	}
	object := make(map[string]any, len(attrs)+2)
	for name, value := range attrs {
		object[name] = value
	}
	if contentType != "" {
		object["datacontenttype"] = contentType
	}
	switch {
	case len(data) == 0:
	case isJSON(contentType) && jsontext.Value(data).IsValid():
		object["data"] = jsontext.Value(data)
	default:
		object["data_base64"] = data
	}
	payload, err := json.Marshal(object)
	if err != nil {
		return nil, e, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return payload, e, nil
}

func get(header map[string][]string, name string) string {
	for key, values := range header {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// mode is how a content type says an event is carried.
type mode int

const (
	modeOther      mode = iota // binary, if there are ce-* headers
	modeStructured             // one event in JSON
	modeBatch                  // a JSON array of events
)

// modeOf tells the mode by content type; ErrNotEvent for CloudEvents in
// another format than JSON, or in another charset than UTF-8.
func modeOf(contentType string) (mode, error) {
	media, params, _ := mime.ParseMediaType(contentType) // what cannot be read is some other type
	if !strings.HasPrefix(media, "application/cloudevents") {
		return modeOther, nil
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return modeOther, fmt.Errorf("%w in UTF-8: charset %.40q", ErrNotEvent, charset)
	}
	switch media {
	case ContentType:
		return modeStructured, nil
	case BatchContentType:
		return modeBatch, nil
	}
	return modeOther, fmt.Errorf("%w in JSON: %.80q", ErrNotEvent, media)
}
