package itemdetail_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

func TestFirstRequestsShareOneReading(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.source.wait = make(chan struct{})
	w.source.began = make(chan string, 10_000)
	h := w.replica(t)
	var group sync.WaitGroup
	var bad sync.Map
	for i := range 10_000 {
		group.Go(func() {
			if a := get(h, "/items/phone"); a.status != http.StatusOK {
				bad.Store(i, a)
			}
		})
	}
	w.source.wantBegun(t)
	close(w.source.wait)
	group.Wait()
	wantReads(t, w.source, 1)
	if w.shared.stockReads != 1 {
		t.Errorf("stock was read %d times, want once", w.shared.stockReads)
	}
	bad.Range(func(_, a any) bool { t.Errorf("answer %v", a); return false })
}

func TestChangeIsSeenWithinTheBoundWithoutAnyMessage(t *testing.T) {
	t.Parallel()
	for fault, lose := range map[string]func(w *world){
		"the message was lost":     func(*world) {},
		"Redis refused the change": func(w *world) { w.shared.set(func() { w.shared.err = errLocked }) },
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.source.put(phone(1))
			replicas := []http.Handler{w.replica(t), w.replica(t), w.replica(t)}
			for _, h := range replicas {
				wantName(t, h, "Phone 1")
			}
			lose(w)
			w.source.put(phone(2))
			w.clock.pass(1510 * time.Millisecond)
			for _, h := range append(replicas, w.replica(t)) {
				wantName(t, h, "Phone 2")
			}
		})
	}
}

func TestHotItemIsCheckedInTheBackground(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1))
	h := w.replica(t)
	wantName(t, h, "Phone 1")
	w.source.set(func() { w.source.wait, w.source.began = make(chan struct{}), make(chan string, 1) })
	w.source.put(phone(2))
	w.clock.pass(1100 * time.Millisecond)
	wantName(t, h, "Phone 1") // answers at once, and has the check started
	w.source.wantBegun(t)
	close(w.source.wait)
	testenv.Eventually(t, 10*time.Second, func() error {
		if got := name(t, h); got != "Phone 2" {
			return fmt.Errorf("still %s", got)
		}
		return nil
	})
	wantReads(t, w.source, 2)
}

func TestUnchangedItemKeepsItsRenderedPage(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	h := w.replica(t)
	first := get(h, "/items/phone")
	for range 5 {
		w.clock.pass(1600 * time.Millisecond)
		if a := get(h, "/items/phone"); a.body != first.body || a.header.Get("ETag") != first.header.Get("ETag") {
			t.Errorf("answer changed: %v", a)
		}
	}
	wantReads(t, w.source, 6)
}

func TestMessageMakesReplicasCheckAtOnce(t *testing.T) {
	t.Parallel()
	for kind, tell := range map[string]struct {
		kind    seckill.EventType
		id      string
		version int64
	}{
		"the item changed":      {seckill.EventItemChanged, "phone", 2},
		"its sale changed":      {seckill.EventSaleChanged, "june", 2},
		"a sale nobody knows":   {seckill.EventSaleChanged, "july", 1},
		"reconnected to NATS":   {"", "", 0},
		"version is not higher": {seckill.EventItemChanged, "phone", 1},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.source.put(phone(1), w.sale("june"))
			h := w.replica(t)
			wantName(t, h, "Phone 1")
			w.source.put(phone(2), w.sale("june"))
			w.shared.set(func() { clear(w.shared.copies) })
			h.Changed(tell.kind, tell.id, tell.version)
			want := "Phone 2"
			if tell.version == 1 && tell.id == "phone" {
				want = "Phone 1"
			}
			wantName(t, h, want)
		})
	}
}

func TestListIsCheckedWhenAnItemIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld()
	h := w.replica(t)
	get(h, "/items")
	w.source.put(phone(1))
	h.Changed(seckill.EventItemChanged, "phone", 1)
	if a := get(h, "/items"); a.body == `{"items":[]}` {
		t.Error("the new item is not listed")
	}
}

func TestStaleItemIsServedWhileMySQLIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.shared.stocks["june"] = 3
	h := w.replica(t)
	wantName(t, h, "Phone 1")
	w.source.set(func() { w.source.err = errors.New("connection refused") })
	h.Changed("", "", 0)
	for range 300 { // 30 s
		w.clock.pass(100 * time.Millisecond)
		wantName(t, h, "Phone 1")
	}
	if reads := w.source.count(); reads > 60 {
		t.Errorf("MySQL was asked %d times in 30 s", reads)
	}
	// A replica that starts now has only the copy in Redis.
	wantName(t, w.replica(t), "Phone 1")
	if w.shared.forgotten != 0 {
		t.Error("a copy was dropped on an error")
	}
	w.source.set(func() { w.source.err = nil })
	w.source.put(phone(2), w.sale("june"))
	before := w.source.count()
	w.clock.pass(1100 * time.Millisecond)
	testenv.Eventually(t, 10*time.Second, func() error {
		if got := name(t, h); got != "Phone 2" {
			return fmt.Errorf("still %s", got)
		}
		return nil
	})
	if reads := w.source.count() - before; reads > 5 {
		t.Errorf("MySQL was read %d times when it came back", reads)
	}
}

func TestUnknownItemFailsFastWhileMySQLIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.err = errors.New("connection refused")
	h := w.replica(t)
	for i := range 1000 {
		a := get(h, fmt.Sprint("/items/x", i))
		if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Fatalf("answer %d %v", a.status, a.header)
		}
	}
	wantReads(t, w.source, 1)
}

func TestRedisAwayMeansMySQLIsRead(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.shared.err = errDown
	a := get(w.replica(t), "/items/phone")
	if want := `"stock":null,"sold_out":false`; a.status != http.StatusOK || !contains(a.body, want) {
		t.Errorf("answer %d %s, want %s", a.status, a.body, want)
	}
}

func TestAbsentItemIsRememberedForASecond(t *testing.T) {
	t.Parallel()
	w := newWorld()
	h := w.replica(t)
	for range 100 {
		wantName(t, h, "404")
	}
	wantReads(t, w.source, 1)
	w.source.put(phone(1))
	w.clock.pass(1010 * time.Millisecond)
	wantName(t, h, "Phone 1")
}

func TestCreatedItemIsSeenAtOnceWhenTold(t *testing.T) {
	t.Parallel()
	w := newWorld()
	h := w.replica(t)
	wantName(t, h, "404")
	w.source.put(phone(1))
	h.Changed(seckill.EventItemChanged, "phone", 1)
	wantName(t, h, "Phone 1")
}

func TestDeletedItemIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(9))
	h := w.replica(t)
	wantName(t, h, "Phone 9")
	w.source.set(func() { delete(w.source.items, "phone") })
	w.clock.pass(1600 * time.Millisecond)
	wantName(t, h, "404")
	if len(w.shared.copies) != 0 {
		t.Errorf("Redis still has %v", w.shared.copies)
	}
	w.source.put(phone(1)) // made anew, with a lower version
	w.clock.pass(1100 * time.Millisecond)
	wantName(t, h, "Phone 1")
}

func TestGuessedIDsAreLimitedAndFillNothing(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1))
	h := w.replica(t)
	wantName(t, h, "Phone 1")
	for i := range 1000 { // in one second
		w.clock.pass(time.Millisecond)
		if a := get(h, fmt.Sprint("/items/guess-", i)); a.status != http.StatusNotFound {
			t.Fatalf("answer %d %s", a.status, a.body)
		}
	}
	if reads := w.source.count(); reads > 100 {
		t.Errorf("MySQL was read %d times", reads)
	}
	if len(w.shared.copies) != 1 {
		t.Errorf("Redis holds %d copies", len(w.shared.copies))
	}
	wantName(t, h, "Phone 1")
	wantName(t, w.replica(t), "Phone 1")
}

// fill makes more items than the list shows.
func (w *world) fill() {
	for i := range 150 {
		item := phone(int64(i + 1))
		item.SKU = fmt.Sprintf("item-%03d", i)
		w.source.put(item)
	}
}

func TestGuessesAreRefusedWhenTheListIsNotAll(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.fill()
	h := w.replica(t)
	refused := 0
	for i := range 1000 {
		a := get(h, fmt.Sprint("/items/guess-", i))
		if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" {
			refused++
		}
	}
	if reads := w.source.count(); reads > 100 || refused < 900 {
		t.Errorf("MySQL was read %d times, %d guesses were refused", reads, refused)
	}
	for sku, want := range map[string]int{"item-001": 200, "item-149": 429} { // listed, and not
		if a := get(h, "/items/"+sku); a.status != want {
			t.Errorf("%s: %d, want %d", sku, a.status, want)
		}
	}
	h.Changed(seckill.EventItemChanged, "item-149", 1)
	if a := get(h, "/items/item-149"); a.status != http.StatusOK {
		t.Errorf("an item that was told of: %d", a.status)
	}
}
