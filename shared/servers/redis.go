package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Redis is a Redis server. Without flags it stores what it holds only when it
// is stopped in good order or told to Save: so Kill and Start bring back an
// older state, and Kill, Wipe and Start an empty one.
type Redis struct {
	Process
	// Addr is the same for the server's whole life.
	Addr string
}

// NewRedis prepares a Redis server; flags are more of its command line's, and
// win over those that are set here.
func NewRedis(flags ...string) (*Redis, error) {
	path, err := look("redis-server")
	if err != nil {
		return nil, err
	}
	dir, err := NewDir("redis")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	addr := HostPort(port)
	return &Redis{Addr: addr, Process: Process{
		Path: path, Dir: dir,
		Args: append([]string{
			"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
			"--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction",
		}, flags...),
		Ping: func(ctx context.Context) error { return redisSay(ctx, addr, "PING", "+PONG") },
	}}, nil
}

// Save stores what the server holds now.
func (r *Redis) Save() error { return redisSay(context.Background(), r.Addr, "SAVE", "+OK") }

// Stop stores what the server holds, ends it and returns when it is gone.
func (r *Redis) Stop() error {
	r.Resume()
	if err := redisSay(context.Background(), r.Addr, "SHUTDOWN SAVE", ""); err != nil {
		return err
	}
	return r.await()
}

// Wipe removes what a server that is not running has Saved, and its
// append-only file if its flags ask for one.
func (r *Redis) Wipe() error {
	for _, name := range []string{"dump.rdb", "appendonlydir"} {
		if err := os.RemoveAll(filepath.Join(r.Dir, name)); err != nil {
			return fmt.Errorf("wipe redis: %w", err)
		}
	}
	return nil
}

// redisSay sends one command and compares the answer's first line; an empty
// want stands for a connection that ends without an answer.
func redisSay(ctx context.Context, addr, command, want string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("tell redis %s: %w", command, err)
	}
	defer conn.Close() //nolint:errcheck // nothing was left unread
	_ = conn.SetDeadline(time.Now().Add(StartMax))
	if _, err := conn.Write([]byte(command + "\r\n")); err != nil {
		return fmt.Errorf("tell redis %s: %w", command, err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if strings.TrimSpace(line) == want {
		return nil
	}
	return errors.Join(fmt.Errorf("tell redis %s: it answered %q", command, line), err)
}
