package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"seckill/shared/servers"
)

// line is one line of the table.
type line struct {
	quantity, a, b, ratio, goal, met string
}

// table is the benchmark's result.
type table struct {
	facts string
	lines []line
}

func (t table) markdown() string {
	var b strings.Builder
	b.WriteString("| quantity | side A | side B | ratio of rates (least–greatest of the rounds); of processor time | goal | met |\n|---|---|---|---|---|---|\n")
	for _, l := range t.lines {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", l.quantity, l.a, l.b, l.ratio, l.goal, l.met)
	}
	b.WriteString("\n" + t.facts + "\n")
	return b.String()
}

// facts are the circumstances of the numbers.
func (s *stage) facts(ctx context.Context) string {
	version := func(name string, p *servers.Process) string {
		return name + " " + firstVersion(ctx, p.Path)
	}
	return fmt.Sprintf("%s, %d cores shared by the load generator, the functions (GOMAXPROCS=1 each, the bare handler too) and all services (%s). "+
		"Sides alternate, %d rounds of %s each after one to warm up; medians. "+
		"HTTP: closed model, %d connections, every buyer once with a token of his own. "+
		"%s: append-only file, fsync every second. "+
		"%s: flush at each commit, no binary log. "+
		"NATS %s: file storage, flushed by sync_interval (2 min); a killed process loses nothing, a lost machine may, and the claim log in Redis then has it.",
		runtime.Version(), runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH,
		s.options.rounds, s.options.length, s.options.conns,
		version("Redis", &s.redis.Process), version("MariaDB", &s.mysql.Process), s.natsVersion())
}

func (s *stage) natsVersion() string { return s.js.Conn().ConnectedServerVersion() }

// amount is a number that can be read.
func amount(v float64) string {
	switch {
	case v >= 100:
		text := strconv.FormatInt(int64(v+0.5), 10)
		for at := len(text) - 3; at > 0; at -= 3 {
			text = text[:at] + "," + text[at:]
		}
		return text
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func seconds(d time.Duration) string { return amount(d.Seconds()) + " s" }

func yesNo(met bool) string {
	if met {
		return "yes"
	}
	return "**no**"
}

// say tells the terminal how far the benchmark is.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "  "+format+"\n", args...) }
