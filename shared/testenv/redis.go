package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

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

// RedisOwn starts a Redis for this test alone; flags are more of its command
// line's.
func RedisOwn(t testing.TB, flags ...string) *RedisServer {
	t.Helper()
	r, err := servers.NewRedis(flags...)
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

// clusterSlots is how many hash slots a Redis Cluster has.
const clusterSlots = 16384

// RedisCluster starts a Redis Cluster of three primaries for this test alone
// and returns their addresses.
func RedisCluster(t testing.TB) (addrs []string) {
	t.Helper()
	const nodes = 3
	ctx, cancel := context.WithTimeout(context.Background(), servers.StartMax)
	defer cancel()
	clients, ports := make([]*redis.Client, nodes), make([]string, nodes)
	for i := range nodes {
		port, err := servers.FreePort()
		require(t, err)
		ports[i] = strconv.Itoa(port)
		node := RedisOwn(t, "--cluster-enabled", "yes", "--cluster-port", ports[i])
		addrs = append(addrs, node.Addr)
		clients[i] = redis.NewClient(&redis.Options{Addr: node.Addr})
		defer clients[i].Close() //nolint:errcheck // nothing was left unread
		require(t, clients[i].Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err())
		require(t, clients[i].ClusterAddSlotsRange(ctx, i*clusterSlots/nodes, (i+1)*clusterSlots/nodes-1).Err())
	}
	for i := 1; i < nodes; i++ {
		host, port, err := net.SplitHostPort(addrs[i])
		require(t, err)
		require(t, clients[0].Do(ctx, "CLUSTER", "MEET", host, port, ports[i]).Err())
	}
	for _, c := range clients {
		Eventually(t, time.Minute, func() error {
			info, err := c.ClusterInfo(ctx).Result()
			whole := strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprint("cluster_known_nodes:", nodes))
			if err == nil && !whole {
				err = fmt.Errorf("the cluster is not whole yet: %s", info)
			}
			return err
		})
	}
	return addrs
}
