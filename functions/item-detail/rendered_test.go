package itemdetail_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Who takes gzip gets it, under an ETag of its own, and the same content.
func TestLongAnswersAreCompressed(t *testing.T) {
	t.Parallel()
	w := newWorld()
	long := phone(1)
	long.Description = strings.Repeat("A phone that rings. ", 200)
	w.source.put(long, w.sale("june"))
	h := w.replica(t)
	for _, accept := range []string{"application/json", "text/html"} {
		plain := ask(h, http.MethodGet, "/items/phone", http.Header{"Accept": {accept}})
		for coding, packed := range map[string]bool{
			"gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "br": false, "x-gzip": false,
		} {
			a := ask(h, http.MethodGet, "/items/phone", http.Header{"Accept": {accept}, "Accept-Encoding": {coding}})
			if !strings.Contains(a.header.Get("Vary"), "Accept-Encoding") || (a.header.Get("Content-Encoding") == "gzip") != packed {
				t.Errorf("%s for %s: %v", accept, coding, a.header)
				continue
			}
			if packed == (a.header.Get("Etag") == plain.header.Get("Etag")) {
				t.Errorf("%s for %s: tag %s, plain %s", accept, coding, a.header.Get("Etag"), plain.header.Get("Etag"))
			}
			if got := unpack(t, a); got != plain.body || packed && len(a.body) >= len(plain.body)/2 {
				t.Errorf("%s for %s: %d bytes of %d say\n%s", accept, coding, len(a.body), len(plain.body), got)
			}
			again := ask(h, http.MethodGet, "/items/phone", http.Header{
				"Accept": {accept}, "Accept-Encoding": {coding}, "If-None-Match": {a.header.Get("Etag")},
			})
			if again.status != http.StatusNotModified || again.body != "" {
				t.Errorf("%s for %s: again %d", accept, coding, again.status)
			}
		}
	}
	other := newWorld()
	other.source.put(phone(1))
	if a := ask(other.replica(t), http.MethodGet, "/items/phone", http.Header{"Accept-Encoding": {"gzip"}}); a.header.Get("Content-Encoding") != "" {
		t.Error("a short answer is compressed")
	}
}

func unpack(t *testing.T, a answer) string {
	t.Helper()
	if a.header.Get("Content-Encoding") == "" {
		return a.body
	}
	reader, err := gzip.NewReader(strings.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
