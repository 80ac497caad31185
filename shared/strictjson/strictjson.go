// Package strictjson reads JSON documents that must be exactly what was asked
// for: nothing unknown, nothing twice, nothing after the end. The parser is
// that of encoding/json/v2, which encoding/json's does not replace: it folds
// the case of keys, takes the last of two and stops at the closing brace.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

const (
	// depthMax bounds how deep objects and lists may nest.
	depthMax = 32
	// fieldMax bounds a field's name in an error, in bytes; the sender chose it.
	fieldMax = 64
	// whole is the field of an error about the document as such.
	whole = "body"
)

// Decode reads r's body, at most maxBytes long, into dst as Unmarshal does.
// The body must be application/json, in UTF-8 if it says a charset, without
// another Content-Encoding than identity: else problem.ErrContentType. A longer
// body is problem.ErrTooLarge, one that ends early seckill.ErrInvalid.
func Decode(w http.ResponseWriter, r *http.Request, maxBytes int64, dst any) error {
	if !isJSON(r.Header) {
		return problem.ErrContentType
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return problem.ErrTooLarge
	case err != nil:
		return invalid(whole, "did not arrive whole")
	}
	return Unmarshal(data, dst)
}

// Unmarshal reads data into dst, a pointer to a struct with json tags. Refused
// with a *seckill.FieldError are: nothing; what is not JSON in UTF-8, also
// with a byte order mark; anything after the document; unknown keys, keys that
// appear twice, keys in another case; null; wrong types, such as 1.0, 1e0 or
// "1" for an integer, and -0; more than 32 levels. On an error dst may be half
// filled.
func Unmarshal(data []byte, dst any) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return invalid(whole, "is empty")
	}
	if err := scan(data); err != nil {
		return err
	}
	if err := json.Unmarshal(data, dst, json.RejectUnknownMembers(true)); err != nil {
		return explain(err)
	}
	return nil
}

// scan refuses what would be legal to the parser, whatever dst is.
func scan(data []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data))
	for {
		token, err := decoder.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return explain(err)
		case decoder.StackDepth() > depthMax:
			return invalid(whole, "is nested more than %d levels deep", depthMax)
		case token.Kind() == 'n':
			return invalid(field(decoder.StackPointer()), "must not be null")
		case token.Kind() == '0' && token.String() == "-0":
			return invalid(field(decoder.StackPointer()), "must not be -0")
		}
	}
}

func isJSON(header http.Header) bool {
	encoding := header.Get("Content-Encoding")
	if encoding != "" && !strings.EqualFold(encoding, "identity") {
		return false
	}
	types := header.Values("Content-Type")
	if len(types) != 1 || len(header.Values("Content-Encoding")) > 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(types[0])
	if err != nil || kind != "application/json" {
		return false
	}
	charset, ok := params["charset"]
	return len(params) == 0 || len(params) == 1 && ok && strings.EqualFold(charset, "utf-8")
}

// explain turns the parser's errors into one that names the field.
func explain(err error) error {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return invalid(field(syntactic.JSONPointer), "appears twice")
		}
		return invalid(whole, "is not valid JSON, at byte %d", syntactic.ByteOffset)
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return invalid(whole, "is not valid JSON")
	}
	name := field(semantic.JSONPointer)
	switch {
	case errors.Is(err, json.ErrUnknownName):
		return invalid(name, "is not known here")
	case errors.Is(err, strconv.ErrRange):
		return invalid(name, "is out of range")
	}
	return invalid(name, "must be %s", expected(semantic.GoType))
}

// expected says in JSON's words what a Go type is written as.
func expected(t reflect.Type) string {
	if t == nil {
		return "of another type"
	}
	if t == reflect.TypeFor[time.Time]() {
		return "an RFC 3339 instant with offset"
	}
	switch kind := t.Kind(); {
	case kind >= reflect.Int && kind <= reflect.Uint64:
		return "an integer"
	case kind == reflect.Float32, kind == reflect.Float64:
		return "a number"
	case kind == reflect.Bool:
		return "true or false"
	case kind == reflect.String:
		return "a string"
	case kind == reflect.Slice, kind == reflect.Array:
		return "a list"
	}
	return "an object"
}

// field is the dotted path to a value, as far as it is worth telling.
func field(pointer jsontext.Pointer) string {
	var parts []string
	for part := range pointer.Tokens() {
		parts = append(parts, part)
	}
	name := strings.Join(parts, ".")
	if name == "" {
		return whole
	}
	return name[:min(len(name), fieldMax)]
}

func invalid(field, format string, args ...any) error {
	return &seckill.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)}
}
