package itemdetail_test

import (
	"testing"
	"time"
)

func TestCopyInRedisIsTrustedOnlyWhileFresh(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(1))
	wantName(t, w.replica(t), "Phone 1")
	w.clock.pass(500 * time.Millisecond)
	wantName(t, w.replica(t), "Phone 1")
	wantReads(t, w.source, 1)
	w.source.put(phone(2))
	w.clock.pass(250 * time.Millisecond)
	wantName(t, w.replica(t), "Phone 2")
	wantReads(t, w.source, 2)
}

func TestOlderVersionNeverReplacesANewer(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.source.put(phone(5))
	h := w.replica(t)
	wantName(t, h, "Phone 5")
	w.source.put(phone(4)) // a replica of MySQL that lags
	for range 5 {
		w.clock.pass(1600 * time.Millisecond)
		wantName(t, h, "Phone 5")
	}
	wantName(t, w.replica(t), "Phone 5")
	if v := w.shared.copies["phone"].version; v != 5 {
		t.Errorf("Redis holds version %d", v)
	}
	w.clock.pass(5 * time.Second) // it goes on: MySQL was restored from a backup
	wantName(t, h, "Phone 4")
	if v := w.shared.copies["phone"].version; v != 4 {
		t.Errorf("Redis holds version %d", v)
	}
}

func TestUnreadableCopyIsIgnoredAndRepaired(t *testing.T) {
	t.Parallel()
	good := newWorld()
	good.source.put(phone(1))
	wantName(t, good.replica(t), "Phone 1")
	text := string(good.shared.copies["phone"].text)
	for _, bad := range []string{
		"", "{", "null", "[]", `{"Format":2,"Item":{"SKU":"phone","Name":"Old"}}`,
		`{"Format":1}`, `{"Format":1,"Item":{"SKU":"other","Name":"Other"}}`, `{"Format":1,"ReadMS":-1e6,"Item":{"SKU":"phone","Name":"x"}}`,
	} {
		w := newWorld()
		w.source.put(phone(1))
		w.shared.copies["phone"] = kept{text: []byte(bad), version: 99, at: w.clock.now()}
		wantName(t, w.replica(t), "Phone 1")
		if got := string(w.shared.copies["phone"].text); got != text {
			t.Errorf("entry %q became %q, want %q", bad, got, text)
		}
	}
}
