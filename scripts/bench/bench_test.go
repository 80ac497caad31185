package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"seckill/shared/events"
	"seckill/shared/seckill"
)

func TestMedianAndSpread(t *testing.T) {
	t.Parallel()
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Errorf("median of three is %g", got)
	}
	if got := median([]float64{8, 2, 4, 6}); got != 5 {
		t.Errorf("median of four is %g", got)
	}
	if got := spread([]float64{1, 3}, []float64{2, 2}); got != "0.50–1.50" {
		t.Errorf("spread %s", got)
	}
}

func TestAmountsRead(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{0.5: "0.50", 12.34: "12.3", 999.6: "1,000", 1234567: "1,234,567"} {
		if got := amount(v); got != want {
			t.Errorf("%g reads %s", v, got)
		}
	}
}

func TestProcessTimeGrows(t *testing.T) {
	t.Parallel()
	before := processTime(os.Getpid())
	for deadline := time.Now().Add(10 * time.Second); processTime(os.Getpid()) <= before; {
		if time.Now().After(deadline) {
			t.Fatal("no processor time in 10 s of work")
		}
	}
	if got := processTime(-1); got != 0 {
		t.Errorf("a process that is not there has used %s", got)
	}
}

func TestBatchesHoldEveryClaimOnce(t *testing.T) {
	t.Parallel()
	claims := make([]seckill.AcceptedClaim, 2*batchEvents+1)
	for i := range claims {
		claims[i] = seckill.AcceptedClaim{
			Claim: "00000000-0000-7000-8000-00000000000" + string(rune('0'+i%10)), Sale: "s", SKU: "s", Buyer: "b", Quantity: 1,
			PriceMinor: 1, Currency: "CNY", PayWindowMS: 60_000, Limit: 1, Epoch: 1, Seq: int64(i + 1), AcceptedAt: time.Now(),
		}
	}
	var seqs int64
	for _, body := range batches(claims) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", events.BatchContentType)
		batch, isBatch, err := events.Read(request, 1<<20)
		if err != nil || !isBatch || len(batch) > batchEvents {
			t.Fatalf("batch of %d: %v", len(batch), err)
		}
		for _, e := range batch {
			claim, err := e.Claim()
			if err != nil {
				t.Fatal(err)
			}
			seqs++
			if claim.Seq != seqs {
				t.Fatalf("claim %d comes at place %d", claim.Seq, seqs)
			}
		}
	}
	if seqs != int64(len(claims)) {
		t.Errorf("%d of %d claims", seqs, len(claims))
	}
}

func TestMarkdownIsATable(t *testing.T) {
	t.Parallel()
	got := table{facts: "facts", lines: []line{{"q", "a", "b", "1.00", "≥ 1", yesNo(true)}, {quantity: "r", met: yesNo(false)}}}.markdown()
	lines := strings.Split(got, "\n")
	for _, text := range lines[:4] {
		if strings.Count(text, "|") != 7 {
			t.Errorf("not six columns: %s", text)
		}
	}
	if lines[2] != "| q | a | b | 1.00 | ≥ 1 | yes |" || !strings.Contains(lines[3], "**no**") || lines[5] != "facts" {
		t.Errorf("table:\n%s", got)
	}
}

func TestCommandLineIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"-rounds 0", "-seconds 0", "-conns 0", "-only [", "-big-sale 0", "-pipeline-for 1ms"} {
		if _, err := parse(strings.Fields(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}
