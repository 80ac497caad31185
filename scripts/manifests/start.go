package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// commandMax bounds a command that is run: a build on a busy machine with
// nothing cached, or a download.
const commandMax = 10 * time.Minute

// samples stand for the secrets, which no manifest holds.
var samples = map[string]string{
	"auth-hmac-secret":       strings.Repeat("sample-", 6),
	"events-secret":          strings.Repeat("sample-", 3),
	"mysql-dsn":              "seckill:sample@tcp(mysql:3306)/seckill",
	"nats-creds":             "-----BEGIN NATS USER JWT-----",
	"payment-webhook-secret": "whsec_c2FtcGxlLXNhbXBsZS1zYW1wbGUtc2FtcGxl",
	"redis-password":         "sample",
	"ticket-secret":          strings.Repeat("sample-", 6),
}

// loadTest, laid beside a function's main, reads the settings as the function
// does when it starts.
const loadTest = `package main

import (
	"testing"

	"seckill/shared/config"
)

func TestLoad(t *testing.T) {
	var s settings
	if err := config.Load(&s); err != nil {
		t.Fatal(err)
	}
}
`

// loaders builds, once, a program for each function that loads its settings
// from the environment and fails if it could not start with them. The code is
// that of the repository, whatever a Tree says.
var loaders = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "manifests")
	if err != nil {
		return "", err
	}
	test := filepath.Join(dir, "load.go")
	if err := os.WriteFile(test, []byte(loadTest), 0o600); err != nil {
		return dir, err
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		return dir, err
	}
	mains, err := filepath.Glob(filepath.Join(root, "functions/*/cmd"))
	if err != nil {
		return dir, err
	}
	replace := map[string]string{}
	for _, main := range mains {
		replace[filepath.Join(main, "load_test.go")] = test
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return dir, err
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		return dir, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandMax)
	defer cancel()
	for _, main := range mains {
		name := filepath.Base(filepath.Dir(main))
		build := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, name), "./functions/"+name+"/cmd")
		build.Dir = root
		if out, err := build.CombinedOutput(); err != nil {
			return dir, fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return dir, nil
})

// removeLoaders removes what loaders built.
func removeLoaders() {
	if dir, _ := loaders(); dir != "" {
		_ = os.RemoveAll(dir)
	}
}

// loaded keeps the results of load, which depend on the Start alone.
var loaded sync.Map

// load starts a function's configuration; the error is what it would say.
func (s Start) load() error {
	// fmt prints maps in the order of their keys.
	once, _ := loaded.LoadOrStore(fmt.Sprint(s), sync.OnceValue(s.loadNow))
	return once.(func() error)()
}

func (s Start) loadNow() error {
	dir, err := loaders()
	if err != nil {
		return err
	}
	secrets, err := os.MkdirTemp(dir, "secrets")
	if err != nil {
		return err
	}
	for _, name := range s.Secrets {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(samples[name]), 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), commandMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(dir, s.Program), "-test.run=^TestLoad$")
	cmd.Env = []string{"SECRETS_DIR=" + secrets}
	for name, value := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	for _, line := range strings.Split(string(out), "\n") {
		if _, message, ok := strings.Cut(line, "config: "); ok {
			return fmt.Errorf("%s does not start: %s", s.Program, message)
		}
	}
	return fmt.Errorf("%s: %w\n%s", s.Program, err, out)
}
