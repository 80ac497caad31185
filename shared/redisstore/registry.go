package redisstore

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// The registry names every sale that MySQL knows, so that "no such sale" and
// "not loaded" are told apart by functions that never ask MySQL. It is written
// anew by each sweep and ends by itself when sweeps stop: then nothing is
// called unknown any more. Sweeps may rest for up to an hour.
const registryTTL = 2 * time.Hour

// Register replaces the registry by these sales.
func (s *Store) Register(ctx context.Context, sales []string) error {
	members := make([]any, 1, len(sales)+1)
	members[0] = "-" // so that the registry of no sales is there, too
	for _, sale := range sales {
		members = append(members, sale)
	}
	_, err := s.client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		pipe.Del(ctx, registryKey)
		pipe.SAdd(ctx, registryKey, members...)
		pipe.Expire(ctx, registryKey, registryTTL)
		return nil
	})
	if err != nil {
		return unavailable("register sales", err)
	}
	return nil
}

// Known reports whether the sale may exist: false only if the registry is
// there and does not name it.
func (s *Store) Known(ctx context.Context, sale string) (bool, error) {
	pipe := s.client.Pipeline()
	there, member := pipe.Exists(ctx, registryKey), pipe.SIsMember(ctx, registryKey, sale)
	if _, err := pipe.Exec(ctx); err != nil {
		return true, unavailable("read the registry", err)
	}
	return there.Val() == 0 || member.Val(), nil
}

// Readable reports whether the claims of a sale can be told: the sale is
// loaded and not fenced. If it is not, a claim that is missing may exist.
func (s *Store) Readable(ctx context.Context, sale string) (bool, error) {
	state, err := s.client.HMGet(ctx, saleKey(sale), "epoch", "fence").Result()
	if err != nil {
		return false, unavailable("read sale "+sale, err)
	}
	return state[0] != nil && state[1] == "", nil
}
