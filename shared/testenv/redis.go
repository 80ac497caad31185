package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/shared/embedded"
)

// Redis returns the address of a real Redis, shared by all tests of the
// binary: take key names from Name and never flush it. With TEST_REDIS_ADDRS it
// is that text, which may name several, separated by commas.
func Redis(t testing.TB) (addr string) {
	t.Helper()
	if addrs := os.Getenv("TEST_REDIS_ADDRS"); addrs != "" {
		return addrs
	}
	addr, err := sharedRedis()
	require(t, err)
	return addr
}

var sharedRedis = sync.OnceValues(func() (string, error) {
	p, addr, err := newRedis()
	if err != nil {
		return "", err
	}
	return addr, p.start()
})

// EmbeddedRedis returns the address of a fresh miniredis, the one that the
// whole system in one process uses.
func EmbeddedRedis(t testing.TB) (addr string) {
	t.Helper()
	addr, stop, err := embedded.Redis()
	require(t, err)
	t.Cleanup(stop)
	return addr
}

// RedisServer is a test's own Redis. It stores what it holds only when it is
// stopped in good order or told to Save: so Kill and Start bring back an older
// state, and Kill, Wipe and Start an empty one.
type RedisServer struct {
	server
	// Addr is the same for the server's whole life.
	Addr string
}

// RedisOwn starts a Redis for this test alone.
func RedisOwn(t testing.TB) *RedisServer {
	t.Helper()
	p, addr, err := newRedis()
	require(t, err)
	s := &RedisServer{server: server{t: t, process: p}, Addr: addr}
	s.begin()
	return s
}

// Save stores what the server holds now.
func (s *RedisServer) Save() {
	s.t.Helper()
	require(s.t, redisSay(context.Background(), s.Addr, "SAVE", "+OK"))
}

// Stop stores what the server holds, ends it and returns when it is gone.
func (s *RedisServer) Stop() {
	s.t.Helper()
	s.process.signal(syscall.SIGCONT)
	require(s.t, redisSay(context.Background(), s.Addr, "SHUTDOWN SAVE", ""))
	require(s.t, s.process.await())
}

// Wipe removes what a server that is not running has stored.
func (s *RedisServer) Wipe() {
	s.t.Helper()
	if err := os.Remove(s.dump()); err != nil && !os.IsNotExist(err) {
		s.t.Fatalf("testenv: wipe redis: %v", err)
	}
}

func (s *RedisServer) dump() string { return filepath.Join(s.process.dir, "dump.rdb") }

func newRedis() (process, string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return process{}, "", fmt.Errorf("redis-server: %w", errMissing)
	}
	dir, err := newDir("redis")
	if err != nil {
		return process{}, "", err
	}
	port, err := freePort()
	if err != nil {
		return process{}, "", err
	}
	addr := hostPort(port)
	return process{
		path: path, dir: dir,
		args: []string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
			"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
		},
		ping: func(ctx context.Context) error { return redisSay(ctx, addr, "PING", "+PONG") },
	}, addr, nil
}

// redisSay sends one command and compares the answer's first line; an empty
// want stands for a connection that ends without an answer.
func redisSay(ctx context.Context, addr, command, want string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("tell redis %s: %w", command, err)
	}
	defer conn.Close() //nolint:errcheck // nothing was left unread
	_ = conn.SetDeadline(time.Now().Add(startMax))
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return fmt.Errorf("tell redis %s: %w", command, err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if strings.TrimSpace(line) == want {
		return nil
	}
	return errors.Join(fmt.Errorf("tell redis %s: it answered %q", command, line), err)
}
