package itemdetail_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	itemdetail "seckill/functions/item-detail"
	"seckill/shared/seckill"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	os.Exit(m.Run())
}

var errDown = fmt.Errorf("down: %w", seckill.ErrUnavailable)

// clock is a clock that a test turns.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// source is MySQL.
type source struct {
	mu    sync.Mutex
	items map[string]seckill.Item
	sales map[string][]seckill.Sale // by SKU
	err   error
	reads int
	// began is told of each reading, wait holds it until it is closed.
	began chan string
	wait  chan struct{}
}

func (s *source) ItemWithSales(ctx context.Context, sku string, _ int) (seckill.Item, []seckill.Sale, error) {
	s.mu.Lock()
	s.reads++
	item, ok := s.items[sku]
	sales, err, wait := slices.Clone(s.sales[sku]), s.err, s.wait
	s.mu.Unlock()
	if s.began != nil {
		s.began <- sku
	}
	if wait != nil {
		select {
		case <-wait:
		case <-ctx.Done():
			return seckill.Item{}, nil, ctx.Err()
		}
	}
	if err == nil && !ok {
		err = seckill.ErrNotFound
	}
	return item, sales, err
}

func (s *source) Items(_ context.Context, limit int) ([]seckill.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	var items []seckill.Item
	for _, item := range s.items {
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b seckill.Item) int { return int(a.Version - b.Version) })
	return items[:min(len(items), limit)], s.err
}

func (s *source) SalesOf(_ context.Context, skus []string) ([]seckill.Sale, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sales []seckill.Sale
	for _, sku := range skus {
		sales = append(sales, s.sales[sku]...)
	}
	return sales, s.err
}

func (s *source) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// wantBegun waits until a reading has begun.
func (s *source) wantBegun(t *testing.T) {
	t.Helper()
	select {
	case <-s.began:
	case <-time.NewTimer(20 * time.Second).C:
		t.Fatal("MySQL is not read")
	}
}

func (s *source) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// put writes an item with one sale at the given version of the item.
func (s *source) put(item seckill.Item, sales ...seckill.Sale) {
	s.set(func() { s.items[item.SKU], s.sales[item.SKU] = item, sales })
}

// shared is Redis.
type shared struct {
	clock *clock

	mu         sync.Mutex
	copies     map[string]kept
	stocks     map[string]int64
	err        error
	stockReads int
	forgotten  int
}

type kept struct {
	text    []byte
	version int64
	at      time.Time
}

func (s *shared) CachedItem(_ context.Context, sku string) ([]byte, time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.copies[sku]
	if s.err == nil && !ok {
		return nil, 0, seckill.ErrNotFound
	}
	return c.text, s.clock.now().Sub(c.at), s.err
}

func (s *shared) CacheItem(_ context.Context, sku string, text []byte, version int64, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && s.copies[sku].version <= version {
		s.copies[sku] = kept{text: text, version: version, at: s.clock.now()}
	}
	return s.err
}

func (s *shared) ForgetItem(_ context.Context, sku string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgotten++
	delete(s.copies, sku)
	return s.err
}

func (s *shared) Stocks(_ context.Context, sales []string) (map[string]int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stockReads++
	out := make(map[string]int64)
	for _, sale := range sales {
		if stock, ok := s.stocks[sale]; ok {
			out[sale] = stock
		}
	}
	return out, s.err
}

func (s *shared) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// world is one MySQL, one Redis and a clock, for any number of replicas.
type world struct {
	clock  *clock
	source *source
	shared *shared
}

func newWorld() *world {
	c := &clock{at: time.Date(2026, 6, 18, 12, 0, 0, 0, time.UTC)}
	return &world{
		clock:  c,
		source: &source{items: map[string]seckill.Item{}, sales: map[string][]seckill.Sale{}},
		shared: &shared{clock: c, copies: map[string]kept{}, stocks: map[string]int64{}},
	}
}

func (w *world) replica(t *testing.T) *itemdetail.Handler {
	t.Helper()
	config := itemdetail.Config{CacheBytesMax: 1 << 20, SourceTimeout: time.Minute, SharedTimeout: time.Minute}
	h, err := itemdetail.New(config, w.source, w.shared, w.clock.now)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// phone returns an item at a version, with the version in its name.
func phone(version int64) seckill.Item {
	return seckill.Item{
		SKU: "phone", Name: fmt.Sprint("Phone ", version), Description: "A phone", ImageURL: "/p.png", Version: version,
	}
}

func (w *world) sale(id string) seckill.Sale {
	now := w.clock.now()
	return seckill.Sale{
		ID: id, SKU: "phone", PriceMinor: 9900, Currency: "CNY", Units: 3, Limit: 1,
		OpensAt: now.Add(-time.Minute), ClosesAt: now.Add(time.Hour), PayWindow: 15 * time.Minute, Epoch: 1, Version: 1,
	}
}

type answer struct {
	status int
	header http.Header
	body   string
}

func get(h http.Handler, path string) answer { return ask(h, http.MethodGet, path, nil) }

func ask(h http.Handler, method, path string, header http.Header) answer {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://shop.test/", nil)
	r.URL.Path = path
	for key, values := range header {
		r.Header[key] = values
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return answer{status: w.Code, header: w.Header(), body: w.Body.String()}
}

// name returns the item's name that h serves, or the status.
func name(t *testing.T, h http.Handler) string {
	t.Helper()
	a := get(h, "/items/phone")
	if a.status != http.StatusOK {
		return fmt.Sprint(a.status)
	}
	var item struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(a.body), &item); err != nil {
		t.Fatal(err)
	}
	return item.Name
}

func wantName(t *testing.T, h http.Handler, want string) {
	t.Helper()
	if got := name(t, h); got != want {
		t.Errorf("served %q, want %q", got, want)
	}
}

func wantReads(t *testing.T, s *source, want int) {
	t.Helper()
	if got := s.count(); got != want {
		t.Errorf("MySQL was read %d times, want %d", got, want)
	}
}

var errLocked = errors.New("MISCONF")
