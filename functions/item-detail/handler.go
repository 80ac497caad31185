// Package itemdetail serves items with their sales: the static part through a
// local cache, Redis and MySQL, the stock live from Redis.
package itemdetail

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/maypok86/otter/v2"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

// Source is the truth about items and sales: MySQL.
type Source interface {
	// ItemWithSales returns an item and its newest sales, read in one
	// statement; seckill.ErrNotFound if there is no such item.
	ItemWithSales(ctx context.Context, sku string, salesMax int) (seckill.Item, []seckill.Sale, error)
	Items(ctx context.Context, limit int) ([]seckill.Item, error)
	SalesOf(ctx context.Context, skus []string) ([]seckill.Sale, error)
}

// Shared is what the replicas share: Redis.
type Shared interface {
	// CachedItem returns an item's document and how long ago it was kept, by
	// Redis' own clock; seckill.ErrNotFound if there is none.
	CachedItem(ctx context.Context, sku string) (document []byte, age time.Duration, err error)
	// CacheItem keeps a document unless a newer version is there.
	CacheItem(ctx context.Context, sku string, document []byte, version int64, ttl time.Duration) error
	ForgetItem(ctx context.Context, sku string) error
	// Stocks returns the live stock of sales; one that is not loaded is absent.
	Stocks(ctx context.Context, sales []string) (map[string]int64, error)
}

// Handler answers GET and HEAD of /items and /items/{sku}: pages for browsers,
// documents for everyone else. It is safe for concurrent use.
type Handler struct {
	cache  *cache
	stocks *stockReader
	web    web
	now    func() time.Time
}

// New returns a Handler that tells the time by now.
func New(config Config, source Source, shared Shared, now func() time.Time) (*Handler, error) {
	absent, err := newMemory(absentFor, now)
	if err != nil {
		return nil, err
	}
	heardOf, err := newMemory(heardFor, now)
	if err != nil {
		return nil, err
	}
	sharedGate := &gate{name: "redis", now: now}
	cache, err := newCache(&loader{
		source: source, shared: shared, config: config, now: now,
		sourceGate: &gate{name: "mysql", now: now}, sharedGate: sharedGate,
		absent: absent, heardOf: heardOf, unknown: &bucket{burst: unknownBurst, perSecond: unknownPerSecond},
		reads: make(chan struct{}, readsMax),
	}, config.CacheBytesMax)
	if err != nil {
		return nil, err
	}
	stocks := &stockReader{shared: shared, gate: sharedGate, timeout: config.SharedTimeout, now: now}
	return &Handler{cache: cache, stocks: stocks, web: web{signIn: config.SignInURL}, now: now}, nil
}

// newMemory returns a bounded memory of SKUs and instants.
func newMemory(keep time.Duration, now func() time.Time) (*otter.Cache[string, time.Time], error) {
	memory, err := otter.New(&otter.Options[string, time.Time]{
		MaximumSize:      absentMax,
		ExpiryCalculator: otter.ExpiryWriting[string, time.Time](keep),
		Clock:            newClock(now),
	})
	if err != nil {
		return nil, fmt.Errorf("memory of SKUs: %w", err)
	}
	return memory, nil
}

// Changed tells the Handler that an item or a sale is at version now; with an
// empty kind and id that anything may have changed.
func (h *Handler) Changed(kind seckill.EventType, id string, version int64) {
	h.cache.changed(kind, id, version)
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		problem.Write(w, problem.Problem{
			Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "an item can only be read",
		})
		return
	}
	key, ok := keyOf(r.URL.Path)
	if !ok {
		if !h.serveStatic(w, r) {
			h.fail(w, r, seckill.ErrNotFound)
		}
		return
	}
	e, now, err := h.cache.get(r.Context(), key)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	p, err := h.stocks.page(r.Context(), e.document, now)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	if wantsPage(r) {
		h.servePage(w, r, e.document, p)
		return
	}
	serve(w, r, p, age(now, e, p))
}

// keyOf returns the document a path names; ok is false if no item can be
// there. A malformed SKU is asked of nobody.
func keyOf(path string) (key string, ok bool) {
	if path == "/items" {
		return listKey, true
	}
	sku, ok := strings.CutPrefix(path, "/items/")
	return sku, ok && seckill.ValidSlug(sku)
}

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if wantsPage(r) {
		h.failPage(w, r, err)
		return
	}
	if errors.Is(err, errTooManyUnknown) {
		problem.Write(w, problem.Problem{
			Status: http.StatusTooManyRequests, Code: "rate", Detail: errTooManyUnknown.Error(), RetryAfter: time.Second,
		})
		return
	}
	problem.Write(w, problem.Of(err))
}

// Header values that are the same in every answer; no one appends to them.
var (
	jsonType     = []string{"application/json"}
	cacheControl = []string{"public, max-age=1"}
	varyAccept   = []string{"Accept, Accept-Encoding"}
	ageOne       = []string{"1"}
)

// age returns how many seconds ago, rounded, all that the page shows was
// true, so that a cache on the way adds to it no more than the rest of
// max-age.
func age(now time.Time, e entry, p *page) int64 {
	checkedAt := e.checkedAt
	if p.readAt.Before(checkedAt) {
		checkedAt = p.readAt
	}
	return int64((now.Sub(checkedAt) + time.Second/2) / time.Second)
}

// serve writes the page: this is the path of every request that hits.
func serve(w http.ResponseWriter, r *http.Request, p *page, age int64) {
	header := w.Header()
	header["Vary"] = varyAccept
	switch {
	case age == 1:
		header["Age"] = ageOne
	case age > 1:
		header["Age"] = []string{strconv.FormatInt(age, 10)}
	}
	header["Content-Type"] = jsonType
	write(w, r, p.rendered, cacheControl)
}

// matches reports whether the values of If-None-Match name etag.
func matches(values []string, etag string) bool {
	for _, value := range values {
		for tag := range strings.SplitSeq(value, ",") {
			tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/")
			if tag == etag || tag == "*" {
				return true
			}
		}
	}
	return false
}
