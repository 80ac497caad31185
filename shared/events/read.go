package events

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Read reads the events of an HTTP request in binary, structured or batch
// mode; isBatch tells the last. The body may have at most sizeMax bytes, a
// batch at most BatchMax events. When ce-* headers come with a structured
// body, the body counts. The error wraps ErrNotEvent, ErrMalformed or
// ErrTooLarge; any other error means that the body could not be read. A
// malformed event inside a batch is no error of the batch: see Event.Err.
func Read(r *http.Request, sizeMax int64) (batch []Event, isBatch bool, err error) {
	contentType := r.Header.Get("Content-Type")
	mode, err := modeOf(contentType)
	if err != nil {
		return nil, false, err
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, false, fmt.Errorf("%w: content encoding %.40q is not read", ErrNotEvent, coding)
	}
	var attrs map[string]string
	if mode == modeOther {
		if attrs, err = attributes(r.Header); err != nil {
			return nil, false, err
		}
		if attrs == nil {
			return nil, false, fmt.Errorf("%w: content type %.80q and no ce- headers", ErrNotEvent, contentType)
		}
	}
	body, err := readBody(r, sizeMax)
	if err != nil {
		return nil, mode == modeBatch, err
	}
	if mode == modeBatch {
		if batch, ok := scanBatch(body); ok {
			return batch, true, nil
		}
		batch, err = parseBatch(body)
		return batch, true, err
	}
	var e Event
	if mode == modeStructured {
		e, err = Parse(body)
	} else {
		e, err = binary(attrs, contentType, body)
	}
	if err != nil {
		return nil, false, err
	}
	return []Event{e}, false, nil
}

// readBody reads all of the body, at once if its length is known.
func readBody(r *http.Request, sizeMax int64) ([]byte, error) {
	if r.ContentLength > sizeMax {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, sizeMax)
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	_, err := io.Copy(&body, http.MaxBytesReader(nil, r.Body, sizeMax))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, sizeMax)
	}
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	return body.Bytes(), nil
}

// parseBatch reads each event of a batch for itself.
func parseBatch(body []byte) ([]Event, error) {
	batch := make([]Event, 0, min(len(body)/512+1, BatchMax))
	err := eachOf(body, func(raw []byte) error {
		e, err := Parse(raw)
		e.Err = err
		batch = append(batch, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return batch, nil
}

// eachOf cuts a JSON array of at most BatchMax elements, and hands each over;
// what it is handed is good until it returns. The cut only asks for sound
// JSON: what else may be wrong is the element's own.
func eachOf(body []byte, do func(raw []byte) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(body), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '[' {
		return fmt.Errorf("%w: the batch is not a JSON array", ErrMalformed)
	}
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for n := 0; dec.PeekKind() != ']'; n++ {
		raw, err := dec.ReadValue()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		if n == BatchMax {
			return fmt.Errorf("%w: more than %d events", ErrTooLarge, BatchMax)
		}
		if err := do(raw); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the batch", ErrMalformed)
	}
	return nil
}
