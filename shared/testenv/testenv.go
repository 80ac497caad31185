// Package testenv gives a test real services: Redis, MySQL (MariaDB) and NATS,
// as processes of its own on free loopback ports. A shared server starts once
// per test binary on first use; an own one belongs to one test, which may kill
// it. All of them die with the test binary, however it ends. Tests only.
//
// TEST_REDIS_ADDRS and TEST_MYSQL_DSN name servers to share instead of starting
// them. A service that is not installed skips the test, or fails it when
// CI=true.
package testenv

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"seckill/shared/servers"
)

// require ends the test unless err is nil: a missing service is a skip at a
// desk and a failure in CI.
func require(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, servers.ErrMissing) && os.Getenv("CI") != "true":
		t.Skipf("testenv: %v: this test did not run", err)
	default:
		t.Fatalf("testenv: %v", err)
	}
}

// nameMax leaves room in a slug of 64 for the random end and for what a test
// appends itself.
const nameMax = 40

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

// Name returns a slug that no other test and no other run uses; it can be the
// id of a sale, at most 50 bytes long.
func Name(t testing.TB) string {
	t.Helper()
	name := strings.Trim(notSlug.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	return name[:min(len(name), nameMax)] + "-" + random(4)
}

// Eventually polls check until it returns nil, and fails the test with its
// last error when that has not come about within the time.
func Eventually(t testing.TB, within time.Duration, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := servers.Poll(ctx, check); err != nil {
		t.Fatalf("not within %s: %v", within, err)
	}
}

// random returns n random bytes as hexadecimal text.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// server is what the own servers of a test have in common.
type server struct {
	t       testing.TB
	process *servers.Process
}

// own starts the server for its test and removes it after.
func own(t testing.TB, p *servers.Process) server {
	t.Helper()
	s := server{t: t, process: p}
	s.Start()
	t.Cleanup(p.Remove)
	return s
}

// Start brings a stopped or killed server back on its old port with what it
// had stored, and returns when it serves.
func (s *server) Start() {
	s.t.Helper()
	require(s.t, s.process.Start())
}

// Stop ends the server in good order and returns when it is gone.
func (s *server) Stop() {
	s.t.Helper()
	require(s.t, s.process.Stop())
}

// Kill ends the server at once (SIGKILL) and returns when it is gone.
func (s *server) Kill() { s.process.Kill() }

// Pause freezes the server (SIGSTOP): connections stay open, nothing answers.
func (s *server) Pause() { s.process.Pause() }

// Resume lets a paused server go on.
func (s *server) Resume() { s.process.Resume() }
