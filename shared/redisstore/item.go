package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/lua"
	"seckill/shared/seckill"
)

var cacheItemScript = redis.NewScript(string(lua.CacheItem))

// Stocks returns the live stock of sales. A sale that is not loaded, is
// fenced, or whose stock is not a number is absent.
func (s *Store) Stocks(ctx context.Context, sales []string) (map[string]int64, error) {
	pipe := s.client.Pipeline()
	states, stocks := make([]*redis.SliceCmd, len(sales)), make([]*redis.StringCmd, len(sales))
	for i, sale := range sales {
		states[i], stocks[i] = pipe.HMGet(ctx, saleKey(sale), "epoch", "fence"), pipe.Get(ctx, stockKey(sale))
	}
	if len(sales) > 0 {
		if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
			return nil, unavailable("read stocks", err)
		}
	}
	out := make(map[string]int64, len(sales))
	for i, sale := range sales {
		state, err := states[i].Result()
		if err != nil || state[0] == nil || state[1] != "" {
			continue
		}
		if stock, err := strconv.ParseInt(stocks[i].Val(), 10, 64); err == nil && stock >= 0 {
			out[sale] = stock
		}
	}
	return out, nil
}

// isReply reports whether err is an answer of Redis about one key (none
// there, or of another kind), not a failure to ask.
func isReply(err error) bool {
	return errors.Is(err, redis.Nil) || redis.HasErrorPrefix(err, "WRONGTYPE")
}

// CachedItem returns an item's cached document and how long ago it was kept,
// by Redis' own clock; seckill.ErrNotFound if there is none or it cannot be
// read.
func (s *Store) CachedItem(ctx context.Context, sku string) (document []byte, age time.Duration, err error) {
	pipe := s.client.TxPipeline()
	fields, left := pipe.HMGet(ctx, itemKey(sku), "document", "ttl"), pipe.PTTL(ctx, itemKey(sku))
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return nil, 0, unavailable("read cached item "+sku, err)
	}
	if values := fields.Val(); len(values) == 2 && left.Val() > 0 {
		text, ok := values[0].(string)
		ttl, _ := values[1].(string)
		if ms, err := strconv.ParseInt(ttl, 10, 64); ok && err == nil {
			return []byte(text), time.Duration(ms)*time.Millisecond - left.Val(), nil
		}
	}
	return nil, 0, fmt.Errorf("cached item %s: %w", sku, seckill.ErrNotFound)
}

// CacheItem keeps an item's document for ttl unless a newer version is there.
func (s *Store) CacheItem(ctx context.Context, sku string, document []byte, version int64, ttl time.Duration) error {
	reply, err := cacheItemScript.Run(ctx, s.client, []string{itemKey(sku)}, version, document, ttl.Milliseconds()).Text()
	if err != nil {
		return unavailable("cache item "+sku, err)
	}
	if reply != "kept" && reply != "older" {
		return fmt.Errorf("cache item %s: unexpected reply %q: %w", sku, reply, seckill.ErrUnavailable)
	}
	return nil
}

// ForgetItem drops an item's cached document.
func (s *Store) ForgetItem(ctx context.Context, sku string) error {
	if err := s.client.Del(ctx, itemKey(sku)).Err(); err != nil {
		return unavailable("forget item "+sku, err)
	}
	return nil
}
