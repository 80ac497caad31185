package servers

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
	"time"

	"seckill/shared/embedded"
)

// NATS is a NATS server with JetStream. Its streams outlive Kill, Stop and
// Start.
type NATS struct {
	Process
	// URL is the same for the server's whole life.
	URL string
}

// NewNATS prepares a NATS server.
func NewNATS() (*NATS, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	dir, err := NewDir("nats")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	return &NATS{URL: "nats://" + HostPort(port), Process: Process{
		Path: self, Dir: dir, Env: []string{natsDir + "=" + dir, natsPort + "=" + strconv.Itoa(port)},
		Ping: func(ctx context.Context) error { return natsPing(ctx, HostPort(port)) },
	}}, nil
}

// Wipe removes the streams of a server that is not running.
func (n *NATS) Wipe() error {
	if err := os.RemoveAll(filepath.Join(n.Dir, "jetstream")); err != nil {
		return fmt.Errorf("wipe nats: %w", err)
	}
	return nil
}

// A program that links this package starts itself again with these variables
// to be a NATS server: nats-server is a library here, not a program.
const (
	natsDir  = "SECKILL_SERVERS_NATS_DIR"
	natsPort = "SECKILL_SERVERS_NATS_PORT"
)

// It is decided before the program's main function starts.
var _ = beNATS()

// beNATS returns at once in the program proper, and never in a NATS server.
func beNATS() struct{} {
	dir, portText := os.Getenv(natsDir), os.Getenv(natsPort) //nolint:forbidigo // says which program this is
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
	_ = conn.SetDeadline(time.Now().Add(StartMax))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if strings.HasPrefix(line, "INFO ") {
		return nil
	}
	return errors.Join(fmt.Errorf("nats greeted with %q", line), err)
}
