package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// network is a listener and its dialer inside the process, so that a server
// can run on a test's own clock.
type network struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newNetwork() *network {
	return &network{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.closed) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *network) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: n.dial}}
}

// status asks path and returns the answer's status, 0 if there was none.
func status(t *testing.T, c *http.Client, path string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://function"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close() //nolint:errcheck // only the status matters
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

func config() Config {
	return Config{
		Port: 8080, InFlightMax: 10, DrainDelay: 5 * time.Second, ShutdownTimeout: 10 * time.Second,
		ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
	}
}

func TestDrainSaysNoFirstThenStops(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		ctx, stop := context.WithCancel(t.Context())
		release, heard := make(chan struct{}), make(chan struct{}, 1)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/slow" {
				<-Draining(w)
				heard <- struct{}{}
				<-release
			}
		})
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, n, config(), h, nil) }()
		client := n.client()
		defer client.CloseIdleConnections()
		if got := status(t, client, healthPath); got != 200 {
			t.Fatalf("health %d", got)
		}
		slow := make(chan int, 1)
		go func() { slow <- status(t, client, "/slow") }()
		synctest.Wait()
		stop()
		<-heard
		for path, want := range map[string]int{healthPath: 503, readyPath: 503, "/": 200} {
			if got := status(t, client, path); got != want {
				t.Errorf("while draining %s answers %d, want %d", path, got, want)
			}
		}
		time.Sleep(6 * time.Second) // in the bubble: past the delay, within the timeout
		synctest.Wait()
		if got := status(t, client, "/"); got != 0 {
			t.Errorf("after the delay a new connection got %d", got)
		}
		close(release)
		if got := <-slow; got != 200 {
			t.Errorf("the request in flight got %d", got)
		}
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestDrainGivesUpOnRequestsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		ctx, stop := context.WithCancel(t.Context())
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, n, config(), h, nil) }()
		got := make(chan int, 1)
		go func() { got <- status(t, n.client(), "/") }()
		synctest.Wait()
		start := time.Now()
		stop()
		err := <-ended
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 requests did not end within 10s") {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(start); took != 15*time.Second {
			t.Errorf("it took %s of the bubble's time", took)
		}
		<-got
	})
}

// A client that sends its body one byte at a time is cut off.
func TestSlowBodyIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		ctx, stop := context.WithCancel(t.Context())
		read := make(chan error, 1)
		h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			read <- err
		})
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, n, config(), h, nil) }()
		conn, err := n.dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200\r\n\r\n")
		for err == nil {
			time.Sleep(time.Second)
			_, err = io.WriteString(conn, "x")
		}
		if err := <-read; err == nil {
			t.Error("the handler got a whole body")
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestRunReportsAPortInUse(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	cfg := config()
	cfg.Port = l.Addr().(*net.TCPAddr).Port
	if err := Run(t.Context(), cfg, http.NotFoundHandler()); err == nil || !strings.Contains(err.Error(), "listen on port") {
		t.Errorf("Run: %v", err)
	}
}

func TestConfigIsRefused(t *testing.T) {
	t.Parallel()
	if err := config().Validate(); err != nil {
		t.Errorf("a good one: %v", err)
	}
	for name, spoil := range map[string]func(*Config){
		"PORT":             func(c *Config) { c.Port = 70_000 },
		"IN_FLIGHT_MAX":    func(c *Config) { c.InFlightMax = 0 },
		"DRAIN_DELAY":      func(c *Config) { c.DrainDelay = -1 },
		"SHUTDOWN_TIMEOUT": func(c *Config) { c.ShutdownTimeout = 0 },
		"READ_TIMEOUT":     func(c *Config) { c.ReadTimeout = time.Hour },
		"WRITE_TIMEOUT":    func(c *Config) { c.WriteTimeout = 0 },
	} {
		cfg := config()
		spoil(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
		if err := Run(t.Context(), cfg, nil); err == nil {
			t.Errorf("%s: Run took it", name)
		}
	}
}
