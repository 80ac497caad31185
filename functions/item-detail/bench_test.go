package itemdetail_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	itemdetail "seckill/functions/item-detail"
)

// sink is a ResponseWriter that costs nothing.
type sink struct{ header http.Header }

func (s sink) Header() http.Header         { return s.header }
func (s sink) Write(b []byte) (int, error) { return len(b), nil }
func (s sink) WriteHeader(int)             {}

// BenchmarkItem compares an item served from the local cache with a handler
// that writes the same bytes and headers and knows nothing.
func BenchmarkItem(b *testing.B) {
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.shared.stocks["june"] = 3
	config := itemdetail.Config{CacheBytesMax: 1 << 20, SourceTimeout: time.Second, SharedTimeout: time.Second}
	hit, err := itemdetail.New(config, w.source, w.shared, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	body := []byte(get(hit, "/items/phone").body)
	bare := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=1")
		_, _ = w.Write(body)
	})
	for name, h := range map[string]http.Handler{"hit": hit, "bare": bare} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/items/phone", nil)
				out := sink{header: http.Header{}}
				for pb.Next() {
					clear(out.header)
					h.ServeHTTP(out, r)
				}
			})
		})
	}
}
