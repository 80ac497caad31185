package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	startMax = 100 * time.Millisecond
	idleMax  = 30 << 20
	imageMax = 20 << 20
	// baseImage is what gcr.io/distroless/static-debian12 adds to a program.
	baseImage = 2 << 20
	// idleAfter is when a started program is taken for idle.
	idleAfter = 3 * time.Second
)

// footprint is what one function's program takes.
type footprint struct {
	name  string
	start time.Duration // median
	work  time.Duration // processor time until it is ready, median
	idle  int64         // bytes
	size  int64         // bytes
}

// processes measures every function's program and states the worst.
func processes(ctx context.Context, s *stage) ([]line, error) {
	var slowest, fattest, largest footprint
	for _, name := range functionNames() {
		f, err := s.footprint(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		say("%-15s ready after %s (%s of processor time), idle at %s MB, program of %s MB", name, ms(f.start), ms(f.work), mb(f.idle), mb(f.size))
		if f.start > slowest.start {
			slowest = f
		}
		if f.idle > fattest.idle {
			fattest = f
		}
		if f.size > largest.size {
			largest = f
		}
	}
	return []line{
		{
			quantity: "process start to ready (worst function, median)", a: slowest.name + ": " + ms(slowest.start), b: "—", ratio: "—",
			goal: "≤ 100 ms", met: yesNo(slowest.start <= startMax),
		},
		{
			quantity: "resident memory when idle (worst function)", a: fattest.name + ": " + mb(fattest.idle) + " MB", b: "—", ratio: "—",
			goal: "≤ 30 MB", met: yesNo(fattest.idle <= idleMax),
		},
		{
			quantity: "image: stripped program + distroless base of 2 MB (largest function)", a: largest.name + ": " + mb(largest.size+baseImage) + " MB", b: "—", ratio: "—",
			goal: "≤ 20 MB", met: yesNo(largest.size+baseImage <= imageMax),
		},
	}, nil
}

func mb(n int64) string { return amount(float64(n) / (1 << 20)) }

func (s *stage) footprint(ctx context.Context, name string) (footprint, error) {
	f := footprint{name: name}
	info, err := os.Stat(filepath.Join(s.bin, name))
	if err != nil {
		return f, err
	}
	f.size = info.Size()
	var starts, works []float64
	for round := range s.options.rounds + 1 {
		one, err := s.startOnce(ctx, name, round == 0)
		if err != nil {
			return f, err
		}
		if round == 0 {
			f.idle = one.idle
			continue
		}
		starts, works = append(starts, float64(one.start)), append(works, float64(one.work))
	}
	f.start, f.work = time.Duration(median(starts)), time.Duration(median(works))
	return f, nil
}

// startOnce starts a program and takes the time until it is ready, and its
// memory when it has been idle for a while, if that is wanted.
func (s *stage) startOnce(ctx context.Context, name string, wait bool) (footprint, error) {
	f := footprint{name: name}
	p, err := s.function(name, "TARGET_URL=http://127.0.0.1:9")
	if err != nil {
		return f, err
	}
	addr := strings.TrimPrefix(p.url, "http://")
	began := time.Now()
	p.Ping = func(ctx context.Context) error {
		for !isReady(ctx, addr) {
			if err := ctx.Err(); err != nil {
				return err
			}
			time.Sleep(500 * time.Microsecond)
		}
		f.start, f.work = time.Since(began), processTime(p.PID())
		return nil
	}
	if err := p.Start(); err != nil {
		return f, err
	}
	defer p.Remove()
	if !wait {
		return f, nil
	}
	select {
	case <-time.After(idleAfter):
	case <-ctx.Done():
		return f, ctx.Err()
	}
	f.idle, err = resident(p.PID())
	return f, err
}

// isReady asks once, over a connection of its own, as a platform's probe does.
func isReady(ctx context.Context, addr string) bool {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // it was read
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write([]byte("GET /_/ready HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")); err != nil {
		return false
	}
	answer := make([]byte, len("HTTP/1.1 200"))
	n, _ := conn.Read(answer)
	return string(answer[:n]) == "HTTP/1.1 200"
}

// resident is the memory of a process that is in RAM.
func resident(pid int) (int64, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	for text := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(text, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("the kernel tells no VmRSS")
}
