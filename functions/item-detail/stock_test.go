package itemdetail_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/shared/testenv"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestStockIsLiveAndNeverNegative(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	h := w.replica(t)
	for _, step := range []struct {
		set  func()
		want string
	}{
		{func() {}, `"stock":null,"sold_out":false`}, // not loaded is not sold out
		{func() { w.shared.stocks["june"] = 3 }, `"stock":3,"sold_out":false`},
		{func() { w.shared.stocks["june"] = 0 }, `"stock":0,"sold_out":true`},
		{func() { w.shared.stocks["june"] = 1 }, `"stock":1,"sold_out":false`},
		{func() { w.shared.stocks["june"] = -1 }, `"stock":0,"sold_out":true`},
		{func() { w.shared.err = errDown }, `"stock":null,"sold_out":false`},
		{func() { w.shared.err = nil; w.shared.stocks["june"] = 2 }, `"stock":2,"sold_out":false`},
	} {
		w.shared.set(step.set)
		w.clock.pass(1010 * time.Millisecond)
		if a := get(h, "/items/phone"); a.status != http.StatusOK || !contains(a.body, step.want) {
			t.Errorf("answer %d %s, want %s", a.status, a.body, step.want)
		}
	}
}

func TestStockIsReadAtMostTwiceASecond(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.shared.stocks["june"] = 3
	h := w.replica(t)
	for range 499 {
		get(h, "/items/phone")
		w.clock.pass(time.Millisecond)
	}
	if w.shared.stockReads != 1 {
		t.Errorf("stock was read %d times in 499 ms", w.shared.stockReads)
	}
	w.shared.set(func() { w.shared.stocks["june"] = 2 })
	w.clock.pass(100 * time.Millisecond)
	testenv.Eventually(t, 10*time.Second, func() error { // in the background
		if a := get(h, "/items/phone"); !contains(a.body, `"stock":2`) {
			return fmt.Errorf("still %s", a.body)
		}
		return nil
	})
}

func TestBlipOfRedisDoesNotHideTheStock(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1), w.sale("june"))
	w.shared.stocks["june"] = 3
	h := w.replica(t)
	get(h, "/items/phone")
	w.shared.set(func() { w.shared.err = errDown })
	w.clock.pass(600 * time.Millisecond)
	get(h, "/items/phone")
	testenv.Eventually(t, 10*time.Second, func() error { // the stock is read in the background, and fails
		w.shared.mu.Lock()
		defer w.shared.mu.Unlock()
		if w.shared.stockReads < 2 {
			return errors.New("not read again")
		}
		return nil
	})
	for range 1000 {
		if a := get(h, "/items/phone"); !contains(a.body, `"stock":3`) {
			t.Fatalf("answer %s", a.body)
		}
	}
	w.clock.pass(500 * time.Millisecond)
	if a := get(h, "/items/phone"); !contains(a.body, `"stock":null`) {
		t.Errorf("a stock over a second old is shown: %s", a.body)
	}
}

func TestArchivedSaleIsNotAskedOfRedis(t *testing.T) {
	t.Parallel()
	w := newWorld()
	sale := w.sale("may")
	sale.OpensAt, sale.ClosesAt = w.clock.now().Add(-72*time.Hour), w.clock.now().Add(-48*time.Hour)
	w.source.put(phone(1), sale)
	if a := get(w.replica(t), "/items/phone"); !contains(a.body, `"state":"closed","stock":null,"sold_out":false`) {
		t.Errorf("answer %s", a.body)
	}
	if w.shared.stockReads != 0 {
		t.Error("Redis was asked")
	}
}
