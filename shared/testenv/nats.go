package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"seckill/shared/embedded"
)

// NATS returns the URL of a real NATS server with JetStream for this test
// alone, inside the test binary and cheap to start. It keeps its streams in
// files until the test ends.
func NATS(t testing.TB) (url string) {
	t.Helper()
	url, stop, err := embedded.NATS(t.TempDir())
	require(t, err)
	t.Cleanup(stop)
	return url
}

// NATSServer is a test's own NATS server in a process of its own, so that it
// can be killed and paused. Its streams outlive Kill, Stop and Start.
type NATSServer struct {
	server
	// URL is the same for the server's whole life.
	URL string
}

// NATSOwn starts a NATS server with JetStream for this test alone.
func NATSOwn(t testing.TB) *NATSServer {
	t.Helper()
	dir, err := newDir("nats")
	require(t, err)
	port, err := freePort()
	require(t, err)
	self, err := os.Executable()
	require(t, err)
	s := &NATSServer{
		URL: "nats://" + hostPort(port),
		server: server{t: t, process: process{
			path: self, dir: dir, env: []string{natsDir + "=" + dir, natsPort + "=" + strconv.Itoa(port)},
			ping: func(ctx context.Context) error { return natsPing(ctx, hostPort(port)) },
		}},
	}
	s.begin()
	return s
}

// Wipe removes the streams of a server that is not running.
func (s *NATSServer) Wipe() {
	s.t.Helper()
	require(s.t, os.RemoveAll(filepath.Join(s.process.dir, "jetstream")))
}

// The test binary starts itself again with these variables to be a NATS server
// instead of a run of tests: nats-server is a library here, not a program.
const (
	natsDir  = "SECKILL_TESTENV_NATS_DIR"
	natsPort = "SECKILL_TESTENV_NATS_PORT"
)

// It is decided before the tests' main function starts.
var _ = beNATS()

// beNATS returns at once in a run of tests, and never in a NATS server.
func beNATS() struct{} {
	dir, portText := os.Getenv(natsDir), os.Getenv(natsPort)
	if dir == "" || portText == "" {
		return struct{}{}
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	port, err := strconv.Atoi(portText)
	if err != nil {
		port = -1
	}
	_, stop, err := embedded.NATSAt(dir, port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ctx.Done()
	stop()
	os.Exit(0)
	return struct{}{}
}

// natsPing waits for the greeting that a server sends to each client.
func natsPing(ctx context.Context, addr string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("reach nats: %w", err)
	}
	defer conn.Close() //nolint:errcheck // only its greeting was of interest
	_ = conn.SetDeadline(time.Now().Add(startMax))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if strings.HasPrefix(line, "INFO ") {
		return nil
	}
	return errors.Join(fmt.Errorf("nats greeted with %q", line), err)
}
