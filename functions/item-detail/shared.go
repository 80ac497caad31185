package itemdetail

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"seckill/shared/seckill"
)

// copyRead is an item's copy from Redis. MySQL said so age ago.
type copyRead struct {
	*document
	age time.Duration
}

// readCopy reads an item's copy in Redis; nil if there is none that can be
// read. A copy of another layout, or of something else, is dropped, so that
// what MySQL says takes its place.
func (l *loader) readCopy(ctx context.Context, sku string) *copyRead {
	if sku == listKey {
		return nil
	}
	var text []byte
	var age time.Duration
	err := l.ask(ctx, l.sharedGate, l.config.SharedTimeout, func(ctx context.Context) (err error) {
		text, age, err = l.shared.CachedItem(ctx, sku)
		return err
	})
	if err != nil {
		return nil
	}
	c, ok := decodeCopy(sku, text)
	if ok {
		var d *document
		if d, err = newDocument([]detail{c.detail}, false); err == nil {
			return &copyRead{document: d, age: max(age, 0) + time.Duration(c.ReadMS)*time.Millisecond}
		}
	}
	slog.WarnContext(ctx, "cached item cannot be read", "sku", sku, "bytes", len(text))
	l.dropCopy(ctx, sku)
	return nil
}

func (l *loader) dropCopy(ctx context.Context, sku string) {
	err := l.ask(ctx, l.sharedGate, l.config.SharedTimeout, func(ctx context.Context) error {
		return l.shared.ForgetItem(ctx, sku)
	})
	if err != nil && !errors.Is(err, seckill.ErrUnavailable) {
		slog.WarnContext(ctx, "cached item not dropped", "sku", sku, "err", err)
	}
}

// writeCopy keeps in Redis what MySQL, asked at began, said. Failing is no
// harm: nobody trusts a copy that is not fresh.
func (l *loader) writeCopy(ctx context.Context, d *document, copied *copyRead, began time.Time) {
	if d.list {
		return
	}
	one := d.details[0]
	if copied != nil && copied.version > d.version {
		l.dropCopy(ctx, one.Item.SKU)
	}
	err := l.ask(ctx, l.sharedGate, l.config.SharedTimeout, func(ctx context.Context) error {
		text, err := encodeCopy(one, l.now().Sub(began))
		if err != nil {
			return err
		}
		return l.shared.CacheItem(ctx, one.Item.SKU, text, d.version, spread(sharedTTL))
	})
	if err != nil && !errors.Is(err, seckill.ErrUnavailable) {
		slog.WarnContext(ctx, "item not cached", "sku", one.Item.SKU, "err", err)
	}
}
