package testenv

import (
	"os"
	"sync"
	"testing"

	"seckill/shared/embedded"
	"seckill/shared/servers"
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
	r, err := servers.NewRedis()
	if err != nil {
		return "", err
	}
	return r.Addr, r.Start()
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

	redis *servers.Redis
}

// RedisOwn starts a Redis for this test alone.
func RedisOwn(t testing.TB) *RedisServer {
	t.Helper()
	r, err := servers.NewRedis()
	require(t, err)
	return &RedisServer{server: own(t, &r.Process), Addr: r.Addr, redis: r}
}

// Save stores what the server holds now.
func (s *RedisServer) Save() {
	s.t.Helper()
	require(s.t, s.redis.Save())
}

// Stop stores what the server holds, ends it and returns when it is gone.
func (s *RedisServer) Stop() {
	s.t.Helper()
	require(s.t, s.redis.Stop())
}

// Wipe removes what a server that is not running has stored.
func (s *RedisServer) Wipe() {
	s.t.Helper()
	require(s.t, s.redis.Wipe())
}
