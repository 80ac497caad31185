package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"seckill/scripts/load/drive"
)

// shop is a system with some units that answers as the real one does. The
// first try of every tenth claim meets a 503.
type shop struct {
	*httptest.Server
	units   atomic.Int64
	claims  atomic.Int64
	settled string // the status of every claim
}

func newShop(t *testing.T, units int64, settled string) *shop {
	t.Helper()
	s := &shop{settled: settled}
	s.units.Store(units)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sales/x/claims", s.claim)
	mux.HandleFunc("GET /sales/x/claims/{id}", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"claim": r.PathValue("id"), "status": s.settled})
	})
	mux.HandleFunc("GET /items/x", func(w http.ResponseWriter, _ *http.Request) {
		sale := map[string]any{"id": "x", "opens_at": time.Now().Add(-time.Hour), "stock": max(s.units.Load(), 0)}
		writeJSON(w, http.StatusOK, map[string]any{"sales": []any{sale}})
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *shop) claim(w http.ResponseWriter, _ *http.Request) {
	switch {
	case s.claims.Add(1)%10 == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	case s.units.Add(-1) >= 0:
		writeJSON(w, http.StatusAccepted, map[string]any{"claim": uuid.NewString(), "status": "reserved"})
	default:
		writeJSON(w, http.StatusConflict, map[string]any{"code": "sold_out"})
	}
}

func writeJSON(w http.ResponseWriter, status int, document any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(document)
}

func playRush(t *testing.T, s *shop) result {
	t.Helper()
	o, err := parse([]string{"-url", s.URL, "-sale", "x", "-buyers", "200", "-conns", "8", "-rest", "100ms"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLoad(t.Context(), o, settings{Secret: "0123456789abcdef0123456789abcdef"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	r, err := l.play(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRushCountsWinnersApartFromRefusals(t *testing.T) {
	t.Parallel()
	r := playRush(t, newShop(t, 50, "ordered"))
	got := map[string]int64{}
	for _, k := range r.kinds {
		got[k.name] = k.hist.TotalCount()
	}
	names := kindNames()
	if len(got) != 2 || got[names[kindWon]] != 50 || got[names[kindSoldOut]] != 150 {
		t.Errorf("outcomes %v", got)
	}
	if !r.hold() || len(r.laws) != 1 || r.laws[0].name != "nothing lost" {
		t.Errorf("laws %+v", r.laws)
	}
	if r.faults["POST was answered 503"] == 0 {
		t.Errorf("faults %v do not tell of the 503s", r.faults)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := writeReport(path, r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"All laws hold", "<svg", ">150<", "open: all arrive at one instant"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, not := range []string{"<link", "src=", "url(", "@import", "ZgotmplZ"} {
		if strings.Contains(string(text), not) {
			t.Errorf("the report has %q", not)
		}
	}
}

func TestClaimWithoutAResultBreaksALaw(t *testing.T) {
	t.Parallel()
	r := playRush(t, newShop(t, 3, "reserved"))
	if r.hold() {
		t.Errorf("laws hold although no claim was settled: %+v", r.laws)
	}
	if table := r.table(); !strings.Contains(table, "BROKEN  nothing lost: 3 of 3") {
		t.Errorf("the table does not say so:\n%s", table)
	}
}

func TestStatusIsJudgedAsTheBuyerWould(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]drive.Kind{
		202: kindWon, 200: kindHeld, 409: kindSoldOut, 403: kindLimit, 425: kindNotOpen, 410: kindClosed,
		429: kindRate, 404: kindRefused, 500: kindUnknown, 503: kindUnknown, 302: kindUnknown,
	} {
		if got := claimKind(status); got != want {
			t.Errorf("%d is %q", status, kindNames()[got])
		}
	}
}

func TestCommandLineIsRefused(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"-scenario nap", "-model half", "-rate 1e9", "-buyers -1", "-conns 0", "-units -5", "-timeout 0s", "-scenario items -for -1s", "stray",
	} {
		if _, err := parse(strings.Fields(line)); err == nil {
			t.Errorf("%s was accepted", line)
		}
	}
}

func TestNumbersRead(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -123: "-123"} {
		if got := thousands(n); got != want {
			t.Errorf("%d reads %s", n, got)
		}
	}
	for high, n := range map[float64]int{0.4: 5, 7: 5, 1234: 5, 19_999: 6} {
		got := steps(high, n)
		if len(got) < 2 || len(got) > n+1 || got[len(got)-1] > high {
			t.Errorf("steps to %g: %v", high, got)
		}
	}
}
