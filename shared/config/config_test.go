package config_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill/shared/config"
)

type inner struct {
	Addrs    []string `envconfig:"T_ADDRS" required:"true"`
	Password string   `envconfig:"T_PASSWORD" secret:"true"`
}

type outer struct {
	Port   int           `envconfig:"T_PORT" default:"8080"`
	Bytes  uint64        `envconfig:"T_BYTES"`
	Small  int8          `envconfig:"T_SMALL"`
	Wait   time.Duration `envconfig:"T_WAIT" default:"1500ms"`
	On     bool          `envconfig:"T_ON"`
	Share  float64       `envconfig:"T_SHARE"`
	Level  slog.Level    `envconfig:"T_LEVEL" default:"info"`
	Key    string        `envconfig:"T_KEY" secret:"true" required:"true"`
	Inside inner
	Left   string // no name: not ours
	hidden int
}

func (o *outer) Validate() error {
	if o.Port > 65535 {
		return errors.Join(fmt.Errorf("T_PORT: %d is no port", o.Port), errors.New("T_MORE: too"))
	}
	return nil
}

func (i inner) Validate() error {
	if i.Password == "guess" {
		return errors.New("T_PASSWORD: is too easy")
	}
	return nil
}

// set lays out an environment with what is required, then overrides it.
func set(t *testing.T, env map[string]string) {
	t.Helper()
	base := map[string]string{"SECRETS_DIR": t.TempDir(), "T_KEY": "k", "T_ADDRS": "a:1"}
	for name := range reflect.TypeFor[outer]().Fields() {
		if tag := name.Tag.Get("envconfig"); tag != "" && base[tag] == "" {
			unset(t, tag)
		}
	}
	for name, value := range env {
		base[name] = value
	}
	for name, value := range base {
		if value == "UNSET" {
			unset(t, name)
		} else {
			t.Setenv(name, value)
		}
	}
}

func unset(t *testing.T, name string) {
	t.Helper()
	t.Setenv(name, "") // so that it comes back
	if err := os.Unsetenv(name); err != nil {
		t.Fatal(err)
	}
}

func TestLoadFillsFromTheEnvironment(t *testing.T) { //nolint:paralleltest // the environment is one
	set(t, map[string]string{
		"T_PORT": "9000", "T_BYTES": "5", "T_ON": "true", "T_SHARE": "0.5",
		"T_LEVEL": "debug", "T_ADDRS": "a:1,b:2", "T_PASSWORD": "p", "LEFT": "x", "INSIDE_T_ADDRS": "no",
	})
	got := outer{hidden: 3}
	if err := config.Load(&got); err != nil {
		t.Fatal(err)
	}
	want := outer{
		Port: 9000, Bytes: 5, Wait: 1500 * time.Millisecond, On: true, Share: 0.5, Level: slog.LevelDebug, Key: "k",
		Inside: inner{Addrs: []string{"a:1", "b:2"}, Password: "p"}, hidden: 3,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestLoadReadsSecretsFromFiles(t *testing.T) { //nolint:paralleltest // the environment is one
	for _, c := range []struct{ name, env, file, want string }{
		{"file", "UNSET", "from file\n", "from file"},
		{"file of windows", "UNSET", "from file\r\n", "from file"},
		{"only the last newline goes", "UNSET", " a\nb \n\n", " a\nb \n"},
		{"an empty variable is as none", "", "from file", "from file"},
		{"the variable wins", "from env", "from file", "from env"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "t-key"), []byte(c.file), 0o600); err != nil {
				t.Fatal(err)
			}
			set(t, map[string]string{"SECRETS_DIR": dir, "T_KEY": c.env})
			got := outer{Share: 0.25}
			if err := config.Load(&got); err != nil {
				t.Fatal(err)
			}
			if got.Share != 0.25 {
				t.Errorf("a field that the environment says nothing of became %v", got.Share)
			}
			if got.Key != c.want || got.Inside.Password != "" {
				t.Errorf("key %q, password %q", got.Key, got.Inside.Password)
			}
		})
	}
}

func TestLoadRefusesInOneLine(t *testing.T) { //nolint:paralleltest // the environment is one
	long := t.TempDir()
	if err := os.WriteFile(filepath.Join(long, "t-key"), make([]byte, 70_000), 0o600); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "t-key"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct { //nolint:paralleltest // the environment is one
		env  map[string]string
		want string
	}{
		{map[string]string{"T_PORT": "abc"}, `config: T_PORT: "abc" is not an integer`},
		{map[string]string{"T_PORT": ""}, `config: T_PORT: "" is not an integer`},
		{map[string]string{"T_BYTES": "-1"}, `config: T_BYTES: "-1" is not an integer`},
		{map[string]string{"T_SMALL": "300"}, `config: T_SMALL: "300" is out of range`},
		{map[string]string{"T_WAIT": "5"}, `config: T_WAIT: "5" is not a duration like 1.5s or 2m`},
		{map[string]string{"T_ON": "ja"}, `config: T_ON: "ja" is not true or false`},
		{map[string]string{"T_SHARE": "x"}, `config: T_SHARE: "x" is not a number`},
		{map[string]string{"T_LEVEL": "loud"}, `config: T_LEVEL: "loud" is not a slog.Level: slog: level string "loud": unknown name`},
		{map[string]string{"T_PORT": "70000"}, `config: T_PORT: 70000 is no port; T_MORE: too`},
		{map[string]string{"T_PASSWORD": "guess"}, `config: T_PASSWORD: is too easy`},
		{map[string]string{"T_ADDRS": "UNSET"}, `config: T_ADDRS: is required`},
		{map[string]string{"T_KEY": "UNSET"}, `config: T_KEY: is required`},
		{map[string]string{"T_KEY": "UNSET", "SECRETS_DIR": long}, `config: T_KEY: the secret in ` + long + `/t-key is longer than 65536 bytes`},
		{map[string]string{"T_KEY": "UNSET", "SECRETS_DIR": folder}, `config: T_KEY: read the secret: read ` + folder + `/t-key: is a directory`},
	} {
		t.Run(c.want, func(t *testing.T) {
			set(t, c.env)
			err := config.Load(&outer{})
			if err == nil || err.Error() != c.want || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestLoadDoesNotRepeatASecret(t *testing.T) {
	t.Setenv("T_PIN", "12x4")
	err := config.Load(&struct {
		Pin int `envconfig:"T_PIN" secret:"true"`
	}{})
	if err == nil || err.Error() != "config: T_PIN: the value is not an integer" {
		t.Errorf("got %v", err)
	}
}

func TestLoadWantsAPointerToAStruct(t *testing.T) {
	t.Parallel()
	for _, dst := range []any{nil, outer{}, new(int)} {
		if err := config.Load(dst); err == nil {
			t.Errorf("Load(%T) did nothing without an error", dst)
		}
	}
}
