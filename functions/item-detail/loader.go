package itemdetail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/maypok86/otter/v2"

	"seckill/shared/seckill"
)

const (
	// listKey is the key of the document of all items; no SKU is empty.
	listKey = ""
	// itemsMax bounds the items of the list, salesMax the sales of one item.
	itemsMax = 100
	salesMax = 100

	// sharedFresh is how old a shared copy may be to stand for MySQL.
	sharedFresh = checkAfter * 7 / 10
	// sharedTTL is how long a shared copy is kept, less a random part: for
	// the time MySQL is away.
	sharedTTL = 6 * time.Minute
	// doubtMax is how long a newer version stands against a MySQL that keeps
	// answering an older one. A reading that was late is over by then; what
	// is still older is a database restored from a backup.
	doubtMax = 10 * time.Second

	// absentFor is how long an unknown SKU is remembered, absentMax how many.
	absentFor = time.Second
	absentMax = 10_000
	// heardFor is how long a SKU is no guess after it was told of.
	heardFor = time.Minute
	// Of unknown SKUs, unknownBurst are looked up at once, then
	// unknownPerSecond; for more the list of items must do, and what that
	// does not settle is refused with "too many".
	unknownBurst     = 50
	unknownPerSecond = 20
	// readsMax bounds the readings of MySQL at one time.
	readsMax = 16
)

var errTooManyUnknown = errors.New("too many unknown items are asked for")

// loader fetches documents for the local cache: from Redis if the copy there
// is fresh, else from MySQL; when MySQL is away, from Redis however old. The
// cache sees to it that a key is fetched by one caller at a time.
type loader struct {
	source Source
	shared Shared
	config Config
	now    func() time.Time

	sourceGate *gate
	sharedGate *gate
	// absent holds SKUs MySQL did not know, and when it was asked.
	absent *otter.Cache[string, time.Time]
	// heardOf holds SKUs that are no guesses, and when they were told.
	heardOf *otter.Cache[string, time.Time]
	unknown *bucket
	reads   chan struct{}
}

// Load implements otter.Loader.
func (l *loader) Load(ctx context.Context, key string) (entry, error) {
	return l.fetch(context.WithoutCancel(ctx), key, nil)
}

// Reload implements otter.Loader.
func (l *loader) Reload(ctx context.Context, key string, old entry) (entry, error) {
	return l.fetch(context.WithoutCancel(ctx), key, &old)
}

// fetch returns the newest of what the levels know. Nothing is deleted on an
// error: old stays in the local cache, the copy in Redis.
func (l *loader) fetch(ctx context.Context, key string, old *entry) (entry, error) {
	if l.knownAbsent(key) {
		return entry{}, otter.ErrNotFound
	}
	began := l.now()
	copied := l.readCopy(ctx, key)
	if copied != nil && copied.age <= sharedFresh {
		return l.newer(old, copied.document, began.Add(-copied.age)), nil
	}
	fromCopy := copied != nil && (old == nil || copied.version > old.version)
	if fromCopy {
		old = &entry{document: copied.document, checkedAt: began.Add(-copied.age)}
	}
	release, err := l.slot(ctx, old == nil && l.isGuess(key))
	if err != nil {
		return entry{}, err
	}
	defer release()
	began = l.now()
	read, err := l.readSource(ctx, key)
	switch {
	case errors.Is(err, seckill.ErrNotFound):
		l.forget(ctx, key, began, copied)
		return entry{}, otter.ErrNotFound
	case err != nil && fromCopy:
		return *old, nil
	case err != nil:
		return entry{}, err
	}
	e := l.newer(old, read, began)
	if e.version == read.version {
		l.writeCopy(ctx, read, copied, began)
	}
	return e, nil
}

// isGuess reports whether nobody has said that the item exists.
func (l *loader) isGuess(key string) bool {
	_, told := l.heardOf.GetIfPresent(key)
	return key != listKey && !told
}

// slot waits for one of readsMax places to read MySQL from. A guess, that is
// a SKU nobody has heard of, gets none when too many were wrong.
func (l *loader) slot(ctx context.Context, guess bool) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, l.config.SourceTimeout)
	defer cancel()
	select {
	case l.reads <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait to read an item: %w: %w", seckill.ErrUnavailable, ctx.Err())
	}
	release = func() { <-l.reads }
	if guess && l.unknown.empty(l.now()) {
		release()
		return nil, errTooManyUnknown
	}
	return release, nil
}

func (l *loader) knownAbsent(key string) bool {
	at, ok := l.absent.GetIfPresent(key)
	return ok && l.now().Sub(at) < absentFor
}

// forget remembers that MySQL, asked at began, does not know the item.
func (l *loader) forget(ctx context.Context, key string, began time.Time, copied *copyRead) {
	l.absent.Set(key, began)
	l.unknown.take(l.now())
	if copied != nil {
		l.dropCopy(ctx, key)
	}
}

// newer returns what to hold when doc, which MySQL said at checkedAt, arrives
// and old is held. A document that says the same as old's keeps old's page.
func (l *loader) newer(old *entry, doc *document, checkedAt time.Time) entry {
	switch {
	case old == nil:
		return entry{document: doc, checkedAt: checkedAt}
	case doc.version < old.version:
		e := entry{document: old.document, checkedAt: checkedAt, doubtedAt: old.doubtedAt}
		if e.doubtedAt.IsZero() {
			e.doubtedAt = checkedAt
		}
		if checkedAt.Sub(e.doubtedAt) > doubtMax {
			return entry{document: doc, checkedAt: checkedAt}
		}
		return e
	case doc.sum == old.sum:
		return entry{document: old.document, checkedAt: checkedAt}
	default:
		return entry{document: doc, checkedAt: checkedAt}
	}
}

func (l *loader) readSource(ctx context.Context, key string) (d *document, err error) {
	err = l.ask(ctx, l.sourceGate, l.config.SourceTimeout, func(ctx context.Context) error {
		var details []detail
		if key == listKey {
			details, err = l.readList(ctx)
		} else {
			details, err = l.readItem(ctx, key)
		}
		if err != nil {
			return err
		}
		d, err = newDocument(details, key == listKey)
		return err
	})
	return d, err
}

func (l *loader) readItem(ctx context.Context, sku string) ([]detail, error) {
	item, sales, err := l.source.ItemWithSales(ctx, sku, salesMax)
	if err != nil {
		return nil, fmt.Errorf("read item %s: %w", sku, err)
	}
	return []detail{{Item: item, Sales: sales}}, nil
}

func (l *loader) readList(ctx context.Context) ([]detail, error) {
	items, err := l.source.Items(ctx, itemsMax)
	if err != nil {
		return nil, fmt.Errorf("list items: %w", err)
	}
	details := make([]detail, len(items))
	skus, place := make([]string, len(items)), make(map[string]int, len(items))
	for i, item := range items {
		details[i].Item, skus[i], place[item.SKU] = item, item.SKU, i
	}
	if len(items) == 0 {
		return details, nil
	}
	sales, err := l.source.SalesOf(ctx, skus)
	if err != nil {
		return nil, fmt.Errorf("list sales of items: %w", err)
	}
	for _, sale := range sales {
		if i, ok := place[sale.SKU]; ok && len(details[i].Sales) < salesMax {
			details[i].Sales = append(details[i].Sales, sale)
		}
	}
	return details, nil
}

// ask calls a service through its gate and with a time limit. An answer that
// there is nothing is an answer.
func (l *loader) ask(ctx context.Context, g *gate, timeout time.Duration, call func(context.Context) error) error {
	if !g.enter() {
		return fmt.Errorf("%s: %w: %w", g.name, seckill.ErrUnavailable, errGateClosed)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := call(ctx)
	if errors.Is(err, seckill.ErrNotFound) {
		g.leave(ctx, nil)
	} else {
		g.leave(ctx, err)
	}
	return err
}

// log is otter's: failures of a service are told by its gate.
type log struct{}

func (log) Warn(ctx context.Context, msg string, err error) { slog.WarnContext(ctx, msg, "err", err) }

func (log) Error(ctx context.Context, msg string, err error) {
	slog.DebugContext(ctx, msg, "err", err)
}
