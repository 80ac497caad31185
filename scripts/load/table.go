package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// kindTotal is all answers of one kind.
type kindTotal struct {
	name string
	hist *hdrhistogram.Histogram
}

// percentiles are those that are shown.
var percentiles = []float64{50, 90, 99, 99.9}

// row is a line of numbers as text: count, rate, percentiles, maximum.
func (k kindTotal) row(took time.Duration) []string {
	n := k.hist.TotalCount()
	cells := []string{k.name, thousands(n), perSecond(float64(n), took)}
	return append(cells, percentileCells(k.hist)...)
}

func percentileCells(h *hdrhistogram.Histogram) []string {
	var cells []string
	for _, p := range percentiles {
		cells = append(cells, short(quantile(h, p)))
	}
	return append(cells, short(time.Duration(h.Max())*time.Microsecond))
}

var columns = []string{"", "count", "/s", "p50", "p90", "p99", "p99.9", "max"}

// rows are all lines of the result's table.
func (r result) rows() [][]string {
	var rows [][]string
	for _, k := range r.kinds {
		rows = append(rows, k.row(r.took))
	}
	if r.placed.orders > 0 {
		rows = append(rows, append([]string{"claim to order (MySQL)", thousands(r.placed.orders), thousands(int64(r.placed.rate))},
			percentileCells(r.placed.lags.all)...))
	}
	if r.seen.all != nil && r.seen.all.TotalCount() > 0 {
		rows = append(rows, append([]string{"202 to result (some buyers)", thousands(r.seen.all.TotalCount()), ""},
			percentileCells(r.seen.all)...))
	}
	return rows
}

// table is the result as text.
func (r result) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s: %s (sale %s)\n", r.scenario.name, r.scenario.what, r.sale)
	for _, f := range r.facts {
		fmt.Fprintf(&b, "  %-15s %s\n", f.name, f.value)
	}
	b.WriteByte('\n')
	aligned := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range append([][]string{columns}, r.rows()...) {
		_, _ = io.WriteString(aligned, strings.Join(row, "\t")+"\t\n") // a Builder takes all
	}
	_ = aligned.Flush()
	fmt.Fprintf(&b, "\nanswered in %s, at rest %s later\n", short(r.took), short(r.rest))
	for _, text := range slices.Sorted(maps.Keys(r.faults)) {
		fmt.Fprintf(&b, "fault: %s (%s times)\n", text, thousands(r.faults[text]))
	}
	for _, l := range r.laws {
		fmt.Fprintf(&b, "%s  %s: %s\n", map[bool]string{true: "BROKEN", false: "holds "}[l.broken], l.name, l.detail)
	}
	return b.String()
}

// thousands groups digits: 1,234,567.
func thousands(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

func perSecond(n float64, took time.Duration) string {
	return thousands(int64(n / max(took.Seconds(), 0.001)))
}

// short is a duration to three digits.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(d.Seconds()*1000, 'f', 2, 64) + " ms"
	case d < time.Second:
		return strconv.FormatFloat(d.Seconds()*1000, 'f', 0, 64) + " ms"
	case d < 100*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 2, 64) + " s"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 0, 64) + " s"
}
