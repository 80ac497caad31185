package events

import (
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

// Structured returns the event that a message of another transport carries,
// as structured JSON and as it is read. header holds the message's headers in
// any case: with ce-* headers and no CloudEvents content type it is binary
// mode and is rewritten; otherwise payload is the message's own data. The
// error wraps ErrNotEvent or ErrMalformed.
func Structured(header map[string][]string, data []byte) (payload []byte, e Event, err error) {
	contentType := get(header, "content-type")
	mode, err := modeOf(contentType)
	switch {
	case err != nil:
		return nil, e, err
	case mode == modeBatch:
		return nil, e, fmt.Errorf("%w: a batch inside one message", ErrNotEvent)
	case mode == modeOther:
		attrs, err := attributes(header)
		if err != nil {
			return nil, e, err
		}
		if attrs != nil {
			return restructure(attrs, contentType, data)
		}
	}
	e, err = Parse(data)
	return data, e, err
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
