// Package redisstore keeps the stock and the reservations of sales in Redis.
// Everything that decides is a script of package lua; this package sends it
// and reads its words.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/lua"
	"seckill/shared/seckill"
)

// Config says which Redis to use: one address is a single server, several a
// Cluster, and with Master they are Sentinels.
type Config struct {
	Addrs    []string      `envconfig:"REDIS_ADDRS" required:"true"`
	Master   string        `envconfig:"REDIS_MASTER"`
	Password string        `envconfig:"REDIS_PASSWORD" secret:"true"`
	ConnsMax int           `envconfig:"REDIS_CONNS_MAX" default:"16"`
	Timeout  time.Duration `envconfig:"REDIS_TIMEOUT" default:"1s"`
}

// Validate refuses what cannot work.
func (c Config) Validate() error {
	if len(c.Addrs) == 0 {
		return errors.New("REDIS_ADDRS: must name at least one host:port")
	}
	for _, addr := range c.Addrs {
		if !strings.Contains(addr, ":") {
			return fmt.Errorf("REDIS_ADDRS: %q is not host:port", addr)
		}
	}
	if c.ConnsMax < 1 || c.ConnsMax > 1000 {
		return errors.New("REDIS_CONNS_MAX: must be 1 to 1000")
	}
	if c.Timeout < 10*time.Millisecond || c.Timeout > 30*time.Second {
		return errors.New("REDIS_TIMEOUT: must be 10ms to 30s")
	}
	return nil
}

// Store is a Redis with its scripts. It is safe for concurrent use.
type Store struct {
	client  redis.UniversalClient
	scripts scripts
}

// scripts are the scripts of a sale as go-redis sends them: by digest, and by
// text to a server that does not know the digest.
type scripts struct {
	claim, settle, restock, head, fence, note, open, load, lift, amend *redis.Script
}

func newScripts(text func(lua.Script) string) scripts {
	s := func(sc lua.Script) *redis.Script { return redis.NewScript(text(sc)) }
	return scripts{
		claim: s(lua.Claim), settle: s(lua.Settle), restock: s(lua.Restock), head: s(lua.Head), fence: s(lua.Fence), note: s(lua.Note),
		open: s(lua.Open), load: s(lua.Load), lift: s(lua.Lift), amend: s(lua.Amend),
	}
}

// Open returns a Store that connects when it is first used.
func Open(c Config) (*Store, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: c.Addrs, MasterName: c.Master, Password: c.Password, SentinelPassword: c.Password,
		// A context's deadline holds only with this switch; without it a
		// stopped Redis holds a request for the whole read timeout.
		ContextTimeoutEnabled: true,
		DialTimeout:           c.Timeout, ReadTimeout: c.Timeout, WriteTimeout: c.Timeout, PoolTimeout: c.Timeout,
		// One repeat replaces a connection that the server had closed; the
		// scripts may run twice.
		MaxRetries: 1, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 20 * time.Millisecond,
		PoolSize: c.ConnsMax, MaxActiveConns: c.ConnsMax, ConnMaxIdleTime: 5 * time.Minute,
		IsClusterMode:   c.Master == "" && len(c.Addrs) > 1,
		DisableIdentity: true,
	})
	return &Store{client: client, scripts: newScripts(func(sc lua.Script) string { return string(sc) })}, nil
}

// Close ends the connections.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close redis: %w", err)
	}
	return nil
}

var probe = redis.NewScript(`return redis.call('SET', KEYS[1], '1', 'PX', 60000)`)

// Ping reports whether scripts run and may write: a Redis that answers PING
// but is a replica, out of memory or closed to scripts is not of use.
func (s *Store) Ping(ctx context.Context) error {
	if err := probe.Run(ctx, s.client, []string{probeKey}).Err(); err != nil {
		return unavailable("probe redis", err)
	}
	return nil
}

// CheckEviction returns an error if Redis, or a node of the Cluster, may evict
// keys of a sale: any policy but noeviction together with a memory limit. A
// server that does not let us ask (managed ones forbid CONFIG) passes.
func (s *Store) CheckEviction(ctx context.Context) error {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return mayEvict(ctx, s.client)
	}
	var mu sync.Mutex
	var found error
	_ = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { // at once; one that is away passes, too
		err := mayEvict(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		if found == nil {
			found = err
		}
		return nil
	})
	return found
}

func mayEvict(ctx context.Context, node redis.Cmdable) error {
	config, err := node.ConfigGet(ctx, "maxmemory*").Result()
	if err != nil {
		return nil //nolint:nilerr // not allowed to ask, or not reachable yet: readiness tells the latter
	}
	policy, limit := config["maxmemory-policy"], config["maxmemory"]
	if policy != "" && policy != "noeviction" && limit != "0" {
		return fmt.Errorf("redis may evict a sale: maxmemory-policy is %s with maxmemory %s; it must be noeviction", policy, limit)
	}
	return nil
}

// unavailable wraps an error of Redis: the caller knows nothing about what was
// done, so it is never a refusal.
func unavailable(what string, err error) error {
	return fmt.Errorf("%s: %w: %w", what, seckill.ErrUnavailable, err)
}

// word runs a script of a sale that answers with one word.
func (s *Store) word(ctx context.Context, sc *redis.Script, sale string, args ...any) (string, error) {
	reply, err := sc.Run(ctx, s.client, saleKeys(sale), args...).Text()
	if err != nil {
		return "", unavailable("redis script for sale "+sale, err)
	}
	return reply, nil
}

func unexpected(sale, reply string) error {
	return fmt.Errorf("sale %s: unexpected reply %q: %w", sale, reply, seckill.ErrUnavailable)
}
