package itemdetail

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/maypok86/otter/v2"

	"seckill/shared/seckill"
)

// How old the static part of a document may be. Every copy, local or in
// Redis, carries the instant since when it is known to be what MySQL says.
// After checkAfter it is checked in the background, after checkMax nobody is
// served before it was checked. Messages that something changed only make
// this faster: the bound holds when they are lost, when Redis was away while
// the change was made, or when this replica was cut off from NATS. Only while
// MySQL does not answer is an older copy served.
const (
	checkAfter = time.Second
	checkMax   = 1500 * time.Millisecond
	// keepFor is how long a document nobody asked for is kept, less a random
	// part: it is served when MySQL is away.
	keepFor = 10 * time.Minute
	// retryAfter is how soon a failed check is tried again, less a random part.
	retryAfter = 300 * time.Millisecond
)

// cache holds the documents this replica has served.
type cache struct {
	local  *otter.Cache[string, entry]
	loader *loader
	now    func() time.Time
}

func newCache(l *loader, bytesMax uint64) (*cache, error) {
	c := &cache{loader: l, now: l.now}
	local, err := otter.New(&otter.Options[string, entry]{
		MaximumWeight:     bytesMax,
		Weigher:           weight,
		ExpiryCalculator:  otter.ExpiryWritingFunc(func(otter.Entry[string, entry]) time.Duration { return spread(keepFor) }),
		RefreshCalculator: refresher{now: l.now},
		Clock:             newClock(l.now),
		Logger:            log{},
	})
	if err != nil {
		return nil, fmt.Errorf("local cache: %w", err)
	}
	c.local = local
	return c, nil
}

// weight counts a document's texts twice, for the rendered page, and a
// kilobyte for all around them.
func weight(_ string, e entry) uint32 {
	return uint32(min(2*e.bytes+1024, 1<<30)) //nolint:gosec // bounded
}

// get returns the document of key, checked at most checkMax ago unless MySQL
// fails, and what time it is. The error wraps seckill.ErrNotFound,
// seckill.ErrUnavailable or is errTooManyUnknown.
func (c *cache) get(ctx context.Context, key string) (entry, time.Time, error) {
	e, err := c.local.Get(ctx, key, c.loader)
	now := c.now()
	if errors.Is(err, errTooManyUnknown) {
		return c.guessed(ctx, key)
	}
	if err != nil {
		return entry{}, now, c.failed(key, err)
	}
	if now.Sub(e.checkedAt) <= checkMax || c.loader.sourceGate.closed() {
		return e, now, nil
	}
	select {
	case result := <-c.local.Refresh(ctx, key, c.loader):
		if errors.Is(result.Err, otter.ErrNotFound) {
			return entry{}, now, c.failed(key, result.Err)
		}
		if result.Err == nil {
			e = result.Value
		}
	case <-ctx.Done():
	}
	return e, c.now(), nil
}

// guessed answers one guess too many from the list of items, which is one
// reading a second however many SKUs are guessed. It knows nothing of items
// beyond its end.
func (c *cache) guessed(ctx context.Context, key string) (entry, time.Time, error) {
	list, now, err := c.get(ctx, listKey)
	if err != nil {
		return entry{}, now, err
	}
	if _, exists := list.holds(seckill.EventItemChanged, key); exists {
		c.loader.heardOf.Set(key, now)
		e, err := c.local.Get(ctx, key, c.loader)
		return e, c.now(), c.failed(key, err)
	}
	if len(list.details) < itemsMax {
		return entry{}, now, c.failed(key, otter.ErrNotFound)
	}
	return entry{}, now, errTooManyUnknown
}

func (c *cache) failed(key string, err error) error {
	if errors.Is(err, otter.ErrNotFound) {
		return fmt.Errorf("item %s: %w", key, seckill.ErrNotFound)
	}
	return err
}

// changed is told that an item or a sale is at version now, or, by an empty
// kind, that anything may have changed. What may be older is checked before
// it is served again; it is not dropped, because MySQL may be away.
func (c *cache) changed(kind seckill.EventType, id string, version int64) {
	if kind == seckill.EventItemChanged {
		c.loader.absent.Invalidate(id)
		c.loader.heardOf.Set(id, c.now())
	}
	known := false
	for key, e := range c.local.All() {
		held, ok := e.holds(kind, id)
		known = known || ok && key != listKey
		if kind == "" || ok && held < version || key == listKey && !ok {
			c.age(key)
		}
	}
	if kind == seckill.EventSaleChanged && !known {
		// A sale that no document shows yet: its item is not named.
		c.changed("", "", 0)
	}
}

// age makes the document of key due to be checked before it is served again.
func (c *cache) age(key string) {
	due := c.now().Add(-checkMax - 1)
	c.local.ComputeIfPresent(key, func(e entry) (entry, otter.ComputeOp) {
		if e.checkedAt.After(due) {
			e.checkedAt = due
		}
		return e, otter.WriteOp
	})
}

// holds returns the version of an item or a sale that the document shows.
func (d *document) holds(kind seckill.EventType, id string) (version int64, ok bool) {
	for _, one := range d.details {
		if kind == seckill.EventItemChanged && one.Item.SKU == id {
			return one.Item.Version, true
		}
		for _, sale := range one.Sales {
			if kind == seckill.EventSaleChanged && sale.ID == id {
				return sale.Version, true
			}
		}
	}
	return 0, false
}

// refresher says when the local cache checks a document in the background.
// Each replica draws its own instant: the first to check writes the copy the
// others then find in Redis.
type refresher struct {
	now func() time.Time
}

func (r refresher) due(e otter.Entry[string, entry]) time.Duration {
	return max(spread(checkAfter)-r.now().Sub(e.Value.checkedAt), time.Nanosecond)
}

// RefreshAfterCreate implements otter.RefreshCalculator.
func (r refresher) RefreshAfterCreate(e otter.Entry[string, entry]) time.Duration { return r.due(e) }

// RefreshAfterUpdate implements otter.RefreshCalculator.
func (r refresher) RefreshAfterUpdate(e otter.Entry[string, entry], _ entry) time.Duration {
	return r.due(e)
}

// RefreshAfterReload implements otter.RefreshCalculator.
func (r refresher) RefreshAfterReload(e otter.Entry[string, entry], _ entry) time.Duration {
	return max(r.due(e), spread(retryAfter)/3)
}

// RefreshAfterReloadFailure implements otter.RefreshCalculator.
func (r refresher) RefreshAfterReloadFailure(otter.Entry[string, entry], error) time.Duration {
	return spread(retryAfter)
}

// clock gives the local cache this function's clock, which does not jump.
type clock struct {
	now  func() time.Time
	base time.Time
}

func newClock(now func() time.Time) clock { return clock{now: now, base: now()} }

// NowNano implements otter.Clock.
func (c clock) NowNano() int64 { return int64(c.now().Sub(c.base)) }

// Tick implements otter.Clock. Without ticks the cache cleans up when it is
// written to.
func (c clock) Tick(time.Duration) <-chan time.Time { return nil }
