package itemdetail_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestItemDocument(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.shared.stocks["june"] = 3
	a := get(w.replica(t), "/items/phone")
	want := `{"sku":"phone","name":"Phone 1","description":"A phone","image_url":"/p.png","sales":[` +
		`{"id":"june","price_minor":9900,"currency":"CNY","opens_at":"2026-06-18T11:59:00Z","closes_at":"2026-06-18T13:00:00Z",` +
		`"limit":1,"state":"open","stock":3,"sold_out":false}]}`
	if a.status != http.StatusOK || a.body != want {
		t.Errorf("answer %d\n%s\nwant\n%s", a.status, a.body, want)
	}
	for key, value := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "public, max-age=1", "Age": "",
	} {
		if a.header.Get(key) != value {
			t.Errorf("%s: %q, want %q", key, a.header.Get(key), value)
		}
	}
}

func TestItemWithoutSalesHasAnEmptyArray(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1))
	if a := get(w.replica(t), "/items/phone"); !strings.Contains(a.body, `"sales":[]`) {
		t.Errorf("body %s", a.body)
	}
}

func TestListDocument(t *testing.T) {
	t.Parallel()
	w := newWorld()
	h := w.replica(t)
	if a := get(h, "/items"); a.status != http.StatusOK || a.body != `{"items":[]}` {
		t.Errorf("no items: %d %s", a.status, a.body)
	}
	w.source.put(phone(1), w.sale("june"))
	other := phone(2)
	other.SKU = "other"
	w.source.put(other)
	w.clock.pass(1600 * time.Millisecond)
	var list struct {
		Items []map[string]any `json:"items"`
	}
	if err := json.Unmarshal([]byte(get(h, "/items").body), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("list %v, %v", list, err)
	}
	var one map[string]any
	if err := json.Unmarshal([]byte(get(h, "/items/phone").body), &one); err != nil || !reflect.DeepEqual(one, list.Items[0]) {
		t.Errorf("in the list %v, alone %v, %v", list.Items[0], one, err)
	}
}

func TestSaleStateFollowsTheClock(t *testing.T) {
	t.Parallel()
	w := newWorld()
	sale := w.sale("june")
	sale.OpensAt = w.clock.now().Add(200 * time.Millisecond)
	sale.ClosesAt = w.clock.now().Add(400 * time.Millisecond)
	w.source.put(phone(1), sale)
	h := w.replica(t)
	for _, state := range []string{"scheduled", "open", "closed"} {
		if a := get(h, "/items/phone"); !strings.Contains(a.body, `"state":"`+state+`"`) {
			t.Errorf("want %s: %s", state, a.body)
		}
		w.clock.pass(200 * time.Millisecond)
	}
	if w.shared.stockReads != 1 {
		t.Errorf("stock was read %d times within 500 ms", w.shared.stockReads)
	}
	sale.ClosesAt, sale.Paused, sale.Version = w.clock.now().Add(time.Hour), true, 2
	w.source.put(phone(1), sale)
	w.clock.pass(2 * time.Second)
	if a := get(h, "/items/phone"); !strings.Contains(a.body, `"state":"paused"`) {
		t.Errorf("want paused: %s", a.body)
	}
}

func TestConditionalGet(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.shared.stocks["june"] = 3
	h := w.replica(t)
	first := get(h, "/items/phone")
	etag := first.header.Get("ETag")
	for _, value := range []string{etag, "W/" + etag, `"other", ` + etag, "*"} {
		a := ask(h, http.MethodGet, "/items/phone", http.Header{"If-None-Match": {value}})
		if a.status != http.StatusNotModified || a.body != "" || a.header.Get("ETag") != etag || a.header.Get("Cache-Control") == "" {
			t.Errorf("If-None-Match %s: %d %q %v", value, a.status, a.body, a.header)
		}
	}
	if a := ask(h, http.MethodGet, "/items/phone", http.Header{"If-None-Match": {`"other"`}}); a.status != http.StatusOK {
		t.Errorf("another tag: %d", a.status)
	}
	w.shared.set(func() { w.shared.stocks["june"] = 2 })
	w.clock.pass(1100 * time.Millisecond)
	a := ask(h, http.MethodGet, "/items/phone", http.Header{"If-None-Match": {etag}})
	if a.status != http.StatusOK || a.header.Get("ETag") == etag || len(etag) < 18 {
		t.Errorf("after the stock changed: %d, tag %s, before %s", a.status, a.header.Get("ETag"), etag)
	}
}

func TestOtherMethods(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1))
	h := w.replica(t)
	if a := ask(h, http.MethodHead, "/items/phone", nil); a.status != http.StatusOK || a.header.Get("ETag") == "" {
		t.Errorf("HEAD: %d %v", a.status, a.header)
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		a := ask(h, method, "/items/phone", nil)
		if a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "GET, HEAD" ||
			a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %v", method, a.status, a.header)
		}
	}
}

func TestMalformedSKUsAreAskedOfNobody(t *testing.T) {
	t.Parallel()
	w := newWorld()
	h := w.replica(t)
	for _, path := range []string{
		"/", "/items/", "/items/ 1", "/items/1/..", "/items/\x00", "/items/Phone", "/items/a b", "/items/a/b",
		"/items/" + strings.Repeat("9", 10_000), "/items/1e3'", "/items/{a}", "/item/phone", "/itemsphone",
	} {
		if a := get(h, path); a.status != http.StatusNotFound || a.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.40q: %d %v", path, a.status, a.header)
		}
	}
	wantReads(t, w.source, 0)
	if len(w.shared.copies) != 0 || w.shared.forgotten != 0 {
		t.Errorf("Redis was written: %v", w.shared.copies)
	}
}

func TestAgeTellsCachesHowOldItIs(t *testing.T) {
	t.Parallel()
	for age, want := range map[time.Duration]string{0: "", 600 * time.Millisecond: "1"} {
		w := newWorld()
		w.source.put(phone(1), w.sale("june"))
		h := w.replica(t)
		get(h, "/items/phone")
		w.clock.pass(age)
		if a := get(h, "/items/phone"); a.header.Get("Age") != want {
			t.Errorf("after %s: Age %q, want %q", age, a.header.Get("Age"), want)
		}
	}
}
