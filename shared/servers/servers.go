// Package servers runs real Redis, MySQL (MariaDB) and NATS servers beside this
// process, on free loopback ports and in folders of their own. All of them die
// with this process, however it ends, and leave nothing behind. It is for tests
// and benchmarks; functions never link it.
package servers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
)

// ErrMissing says that the program of a server is not installed.
var ErrMissing = errors.New("not installed")

// StartMax bounds how long a server may take to start or to stop.
const StartMax = 60 * time.Second

// keepOpen holds our ends of the guards' pipes: collected as garbage they
// would be closed.
var keepOpen sync.Map

// Poll calls check until it returns nil or ctx is done, then returns its last
// error.
func Poll(ctx context.Context, check func() error) error {
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

// Ports are taken below the range from which systems pick the local ends of
// outgoing connections, so that a port is still free when its server comes
// back.
const (
	portFrom = 20_000
	portEnd  = 32_000
)

// FreePort returns a loopback port nobody listens on.
func FreePort() (int, error) {
	var last error
	for range 50 {
		n, err := rand.Int(rand.Reader, big.NewInt(portEnd-portFrom))
		if err != nil {
			return 0, fmt.Errorf("pick a port: %w", err)
		}
		port := portFrom + int(n.Int64())
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", HostPort(port))
		if err != nil {
			last = err
			continue
		}
		_ = listener.Close()
		return port, nil
	}
	return 0, fmt.Errorf("find a free port: %w", last)
}

// HostPort is the loopback address with this port.
func HostPort(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// home is the folder of everything that this process's servers store. It is
// removed when the process has ended.
var home = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "seckill-servers-")
	if err != nil {
		return "", fmt.Errorf("make a folder for servers: %w", err)
	}
	if _, err := guard(0, dir); err != nil {
		return "", err
	}
	return dir, nil
})

// NewDir returns a new empty folder, which is removed when this process has
// ended. kind is the beginning of its name.
func NewDir(kind string) (string, error) {
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

// look finds a program on PATH or among those for administrators.
func look(name string) (string, error) {
	for _, try := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if path, err := exec.LookPath(try); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrMissing)
}
