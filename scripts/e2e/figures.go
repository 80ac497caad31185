package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// figures are what a run measured, in the order of the run.
type figures struct {
	rows [][2]string
}

func (f *figures) add(what, format string, args ...any) {
	row := [2]string{what, fmt.Sprintf(format, args...)}
	f.rows = append(f.rows, row)
	fmt.Printf("  %s: %s\n", row[0], row[1])
}

// print writes the figures as a table in Markdown.
func (f *figures) print(w io.Writer) {
	_, _ = fmt.Fprintln(w, "| what | figure |\n|---|---|")
	for _, row := range f.rows {
		_, _ = fmt.Fprintf(w, "| %s | %s |\n", row[0], row[1])
	}
}

// spread describes durations by their median, 99th percentile and maximum.
func spread(durations []time.Duration) string {
	slices.Sort(durations)
	at := func(share float64) time.Duration {
		return durations[min(len(durations)-1, int(share*float64(len(durations))))].Round(time.Millisecond)
	}
	return fmt.Sprintf("median %s, p99 %s, slowest %s", at(0.5), at(0.99), at(1))
}
