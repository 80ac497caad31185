// Package config fills a program's configuration from the environment, its
// secrets from files.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/kelseyhightower/envconfig"
)

const (
	secretsDirName    = "SECRETS_DIR"
	secretsDirDefault = "/var/openfaas/secrets"
	// secretMax bounds a secret's file, in bytes.
	secretMax = 64 << 10
)

// Load fills dst, a pointer to a struct, from the environment. Each field
// says in tags how: envconfig:"NAME", default:"…", required:"true" (neither
// missing nor empty). A struct field without a name is filled field by field;
// every other field without a name is left alone.
//
// A string tagged secret:"true" that is empty then is read from the file
// SECRETS_DIR/name, name being the variable's in lower case with dashes for
// underscores, less the newline at its end; without SECRETS_DIR from
// /var/openfaas/secrets. No such file leaves it empty.
//
// At last Validate() error is called where dst or a struct in it has one.
// Any error is one line that names the variable: a bad value stops the
// program, it never falls back to a default.
func Load(dst any) error {
	value := reflect.ValueOf(dst)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("config: %T is not a pointer to a struct", dst)
	}
	err := fill(value.Elem())
	if err == nil {
		err = validate(value.Elem())
	}
	if err != nil {
		line := strings.ReplaceAll(err.Error(), "\n", "; ") // as errors.Join leaves it
		return fmt.Errorf("config: %s", line)
	}
	return nil
}

func fill(value reflect.Value) error {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		var err error
		switch {
		case field.Tag.Get("envconfig") != "":
			err = fillField(field, value.Field(i))
		case field.Type.Kind() == reflect.Struct:
			err = fill(value.Field(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fillField has envconfig process one field alone, so that an error can name
// its variable and nested structs put no prefix before it.
func fillField(field reflect.StructField, value reflect.Value) error {
	name := field.Tag.Get("envconfig")
	secret := field.Tag.Get("secret") == "true"
	alone := field
	alone.Anonymous = false
	alone.Tag = reflect.StructTag(fmt.Sprintf("envconfig:%q default:%q", name, field.Tag.Get("default")))
	one := reflect.New(reflect.StructOf([]reflect.StructField{alone}))
	one.Elem().Field(0).Set(value)
	if err := envconfig.Process("", one.Interface()); err != nil {
		return explain(name, secret, err)
	}
	value.Set(one.Elem().Field(0))
	if secret && value.Kind() == reflect.String && value.IsZero() {
		text, err := readSecret(name)
		if err != nil {
			return err
		}
		value.SetString(text)
	}
	if field.Tag.Get("required") == "true" && value.IsZero() {
		return fmt.Errorf("%s: is required", name)
	}
	return nil
}

// explain says what was wrong with the variable's value; a secret's value is
// not repeated.
func explain(name string, secret bool, err error) error {
	var parse *envconfig.ParseError
	if !errors.As(err, &parse) {
		return fmt.Errorf("%s: %w", name, err)
	}
	what := expected(parse)
	if secret {
		return fmt.Errorf("%s: the value %s", name, what)
	}
	return fmt.Errorf("%s: %q %s", name, parse.Value, what)
}

func expected(parse *envconfig.ParseError) string {
	if errors.Is(parse.Err, strconv.ErrRange) {
		return "is out of range"
	}
	switch parse.TypeName {
	case reflect.TypeFor[time.Duration]().String():
		return "is not a duration like 1.5s or 2m"
	case "bool":
		return "is not true or false"
	case "int", "int8", "int16", "int32", "int64", "uint", "uint8", "uint16", "uint32", "uint64":
		return "is not an integer"
	case "float32", "float64":
		return "is not a number"
	}
	return fmt.Sprintf("is not a %s: %s", parse.TypeName, parse.Err)
}

// readSecret returns the content of the variable's secret file; empty if there
// is none.
func readSecret(name string) (string, error) {
	dir := os.Getenv(secretsDirName)
	if dir == "" {
		dir = secretsDirDefault
	}
	path := filepath.Join(dir, strings.ToLower(strings.ReplaceAll(name, "_", "-")))
	file, err := os.Open(path) //nolint:gosec // the operator names the folder
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: read the secret: %w", name, err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(file, secretMax+1))
	if err != nil {
		return "", fmt.Errorf("%s: read the secret: %w", name, err)
	}
	if len(text) > secretMax {
		return "", fmt.Errorf("%s: the secret in %s is longer than %d bytes", name, path, secretMax)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), nil
}

// validate asks the structs inside before those around them.
func validate(value reflect.Value) error {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() || field.Type.Kind() != reflect.Struct || field.Tag.Get("envconfig") != "" {
			continue
		}
		if err := validate(value.Field(i)); err != nil {
			return err
		}
	}
	if v, ok := value.Addr().Interface().(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}
