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
	"fmt"
	"math/big"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// keepOpen holds our ends of the guards' pipes: collected as garbage they
// would be closed.
var keepOpen sync.Map

// errMissing: the service's program is not installed.
var errMissing = errors.New("not installed")

// startMax bounds how long a server may take to start or to stop.
const startMax = 60 * time.Second

// require ends the test unless err is nil: a missing service is a skip at a
// desk and a failure in CI.
func require(t testing.TB, err error) {
	t.Helper()
	switch {
	case err == nil:
	case errors.Is(err, errMissing) && os.Getenv("CI") != "true":
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
	if err := poll(ctx, check); err != nil {
		t.Fatalf("not within %s: %v", within, err)
	}
}

// poll calls check until it returns nil or ctx is done, then returns its last
// error.
func poll(ctx context.Context, check func() error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// random returns n random bytes as hexadecimal text.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Ports are taken below the range from which systems pick the local ends of
// outgoing connections, so that a port is still free when its server comes
// back.
const (
	portFrom = 20_000
	portEnd  = 32_000
)

// freePort returns a loopback port nobody listens on.
func freePort() (int, error) {
	var last error
	for range 50 {
		n, err := rand.Int(rand.Reader, big.NewInt(portEnd-portFrom))
		if err != nil {
			return 0, fmt.Errorf("pick a port: %w", err)
		}
		port := portFrom + int(n.Int64())
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", hostPort(port))
		if err != nil {
			last = err
			continue
		}
		_ = listener.Close()
		return port, nil
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

func hostPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// home is the folder of everything that this test binary's servers store. It
// is removed when the binary has ended.
var home = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "seckill-test-")
	if err != nil {
		return "", fmt.Errorf("make a folder for test services: %w", err)
	}
	if _, err := guard(0, dir); err != nil {
		return "", err
	}
	return dir, nil
})

// newDir returns a new empty folder in home.
func newDir(kind string) (string, error) {
	base, err := home()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(base, kind+"-")
	if err != nil {
		return "", fmt.Errorf("make a folder for %s: %w", kind, err)
	}
	return dir, nil
}
