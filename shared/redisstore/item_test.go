package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestCachedItemKeepsTheNewestVersion(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		ctx, sku := context.Background(), testenv.Name(t)
		if _, _, err := w.CachedItem(ctx, sku); !errors.Is(err, seckill.ErrNotFound) {
			t.Fatalf("nothing cached: %v", err)
		}
		for _, version := range []int64{2, 1, 3, 3, 2} {
			if err := w.CacheItem(ctx, sku, fmt.Appendf(nil, "v%d", version), version, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		document, age, err := w.CachedItem(ctx, sku)
		if err != nil || string(document) != "v3" || age < 0 || age > 30*time.Second {
			t.Fatalf("document %q, age %s, error %v; want v3, kept just now", document, age, err)
		}
		if err := w.ForgetItem(ctx, sku); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.CachedItem(ctx, sku); !errors.Is(err, seckill.ErrNotFound) {
			t.Errorf("forgotten: %v", err)
		}
	})
}

func TestCachedItemTellsItsAge(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		ctx, sku := context.Background(), testenv.Name(t)
		if err := w.CacheItem(ctx, sku, []byte("text"), 1, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := w.raw.PExpire(ctx, redisstore.ItemKey(sku), 40*time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		if _, age, err := w.CachedItem(ctx, sku); err != nil || age < 20*time.Minute || age > 21*time.Minute {
			t.Errorf("age %s, error %v; want 20 minutes", age, err)
		}
	})
}

func TestUnreadableCachedItemIsNoneAndIsReplaced(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		ctx := context.Background()
		for name, spoil := range map[string]func(key string) error{
			"a list":      func(key string) error { return w.raw.RPush(ctx, key, "x").Err() },
			"a string":    func(key string) error { return w.raw.Set(ctx, key, "{", 0).Err() },
			"no fields":   func(key string) error { return w.raw.HSet(ctx, key, "x", "y").Err() },
			"bad version": func(key string) error { return w.raw.HSet(ctx, key, "version", "x", "document", "d").Err() },
			"no lifetime": func(key string) error {
				return w.raw.HSet(ctx, key, "version", "99", "document", "d", "ttl", "60000").Err()
			},
		} {
			sku := testenv.Name(t)
			if err := spoil(redisstore.ItemKey(sku)); err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.CachedItem(ctx, sku); !errors.Is(err, seckill.ErrNotFound) {
				t.Errorf("%s: read with error %v", name, err)
			}
			if err := w.CacheItem(ctx, sku, []byte("good"), 1, time.Minute); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if document, _, err := w.CachedItem(ctx, sku); err != nil || string(document) != "good" {
				t.Errorf("%s: afterwards %q, %v", name, document, err)
			}
		}
	})
}
