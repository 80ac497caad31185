package campaign

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"seckill/scripts/faults/stage"
)

func redisPaused(ctx context.Context, f *fault) (string, error) {
	f.stage.Redis.Pause()
	defer f.stage.Redis.Resume()
	f.lasts(ctx, 1500*time.Millisecond)
	return "", nil
}

// redisKilled brings it back with its append-only file. A busy disk may hold
// the last writes back, so it can be a little older.
func redisKilled(ctx context.Context, f *fault) (string, error) {
	return "", f.older(ctx, func() error {
		f.stage.Redis.Kill()
		f.lasts(ctx, 500*time.Millisecond)
		return f.stage.Redis.Start()
	})
}

func redisEmpty(ctx context.Context, f *fault) (string, error) {
	f.lost()
	f.stage.Redis.Kill()
	if err := f.stage.Redis.Wipe(); err != nil {
		return "", err
	}
	f.lasts(ctx, 300*time.Millisecond)
	return "", f.stage.Redis.Start()
}

// redisOlder brings it back as it was a while ago, as a replica that lagged
// behind when it was made the master.
func redisOlder(ctx context.Context, f *fault) (string, error) {
	copied, err := copyRedis(ctx, f.stage)
	if err != nil {
		return "", err
	}
	began := time.Now()
	f.lasts(ctx, 1500*time.Millisecond)
	return fmt.Sprint("by ", time.Since(began).Round(time.Millisecond)), f.older(ctx, copied.restore)
}

// redisCopy is what a Redis held at some time.
type redisCopy struct {
	stage        *stage.Stage
	kept, copied string
}

// copyRedis copies all that Redis holds now. With everysec it may hold writes
// back for two seconds while the disk is busy.
func copyRedis(ctx context.Context, s *stage.Stage) (redisCopy, error) {
	kept := filepath.Join(s.Redis.Dir, "appendonlydir")
	c := redisCopy{s, kept, kept + ".copy"}
	if err := s.Admin.ConfigSet(ctx, "appendfsync", "always").Err(); err != nil {
		return c, err
	}
	if err := s.Admin.Set(ctx, "bench", "written", 0).Err(); err != nil { // and what was before it
		return c, err
	}
	if err := os.CopyFS(c.copied, os.DirFS(kept)); err != nil {
		return c, err
	}
	return c, s.Admin.ConfigSet(ctx, "appendfsync", "everysec").Err()
}

// restore has Redis die and come back with the copy, which is gone then.
func (c redisCopy) restore() error {
	c.stage.Redis.Kill()
	if err := os.RemoveAll(c.kept); err != nil {
		return err
	}
	if err := os.Rename(c.copied, c.kept); err != nil {
		return err
	}
	return c.stage.Redis.Start()
}

// older lets Redis come back with data that may be older, and waits until the
// system had the chance to notice: until a sale is built again Redis says what
// was true once. A lost return alone is noticed only when the sale is at rest,
// so a sale that was not built again is not trusted for the rest of the round.
func (f *fault) older(ctx context.Context, back func() error) error {
	from, epochs := time.Now(), f.epochs(ctx)
	f.lost()
	err := back()
	came := time.Now()
	for range 2 {
		_ = f.stage.Sweep(ctx) // a sweep may meet a connection that is gone
	}
	if calm := f.calm(ctx, came); err == nil && calm != nil {
		f.violation(Violation{Law: "self-healing", Sale: "all", Detail: fmt.Sprintf("after older data: not calm within %s: %v", f.healing(), calm)})
	}
	for i, epoch := range f.epochs(ctx) {
		o, to := f.offers[i], forever
		if epoch > epochs[i] {
			to = time.Now()
		}
		o.aged = true
		o.distrusted = append(o.distrusted, span{from, to})
	}
	return err
}

// epochs tells how often each sale was built so far; 0 if it cannot be read.
func (f *fault) epochs(ctx context.Context) []int64 {
	epochs := make([]int64, len(f.offers))
	for i, o := range f.offers {
		if sale, err := f.stage.Records.Sale(ctx, o.sale.ID); err == nil {
			epochs[i] = sale.Epoch
		}
	}
	return epochs
}

// lost notes that Redis loses data of every sale.
func (f *fault) lost() {
	for _, o := range f.offers {
		o.lossy = true
	}
}

func redisFlushed(ctx context.Context, f *fault) (string, error) {
	f.lost()
	return "", f.stage.Admin.FlushAll(ctx).Err()
}

// redisKeyDeleted removes one of the keys of one sale.
func redisKeyDeleted(ctx context.Context, f *fault) (string, error) {
	o := f.offers[f.rng.IntN(len(f.offers))]
	keys, err := f.stage.Admin.Keys(ctx, "*{"+o.sale.ID+"}*").Result()
	if err != nil {
		return "", err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return strings.Contains(key, ":rate:") })
	if len(keys) == 0 {
		return "", errNotReached
	}
	slices.Sort(keys)
	key := keys[f.rng.IntN(len(keys))]
	o.lossy = true
	return key, f.stage.Admin.Del(ctx, key).Err()
}

// configured has a setting of Redis changed for a while.
func (f *fault) configured(ctx context.Context, name, value, back string) error {
	if err := f.stage.Admin.ConfigSet(ctx, name, value).Err(); err != nil {
		return err
	}
	f.lasts(ctx, 1200*time.Millisecond)
	return f.stage.Admin.ConfigSet(ctx, name, back).Err()
}

func redisOutOfMemory(ctx context.Context, f *fault) (string, error) {
	return "", f.configured(ctx, "maxmemory", "1", "0")
}

func redisTakesNoWrites(ctx context.Context, f *fault) (string, error) {
	return "", f.configured(ctx, "min-replicas-to-write", "1", "0")
}

// redisBusy has a script run so long that Redis refuses everybody else.
func redisBusy(ctx context.Context, f *fault) (string, error) {
	if err := f.stage.Admin.ConfigSet(ctx, "busy-reply-threshold", "20").Err(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const script = `local t = redis.call('TIME'); local stop = t[1] * 1000000 + t[2] + ARGV[1]
		repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] > stop; return 'done'`
	client := f.stage.Admin.WithTimeout(10 * time.Second)
	err := client.Eval(ctx, script, nil, 1_200_000).Err()
	if back := f.stage.Admin.ConfigSet(ctx, "busy-reply-threshold", "5000").Err(); err == nil {
		err = back
	}
	return "", err
}

func redisForgetsScripts(ctx context.Context, f *fault) (string, error) {
	return "", f.stage.Admin.ScriptFlush(ctx).Err()
}
