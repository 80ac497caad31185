package scenarios_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/shared/testenv"
)

// soaker sends requests of every kind over real connections.
type soaker struct {
	base, sale string
	client     *http.Client
}

// round sends n requests from a few clients at once: claims, refusals, results
// that are waited for, hung up on, or not there, bodies that are no claims or
// end early.
func (k soaker) round(t *testing.T, name string, n int) {
	t.Helper()
	const clients = 16
	var group sync.WaitGroup
	for c := range clients {
		group.Go(func() {
			for i := c; i < n; i += clients {
				k.one(t.Context(), i, fmt.Sprint(name, i))
			}
		})
	}
	group.Wait()
}

func (k soaker) one(ctx context.Context, i int, buyer string) {
	method, path, body := http.MethodPost, "/sales/"+k.sale+"/claims", `{"quantity":1}`
	switch i % 8 {
	case 1:
		body = `{"quantity":-1}`
	case 2:
		method, path, body = http.MethodGet, path+"/01890000-0000-7000-8000-000000000001", ""
	case 3:
		path = "/sales/none/claims"
	case 4: // somebody hangs up
		var hangUp context.CancelFunc
		ctx, hangUp = context.WithTimeout(ctx, time.Millisecond)
		defer hangUp()
	case 5: // and somebody in the middle of his body
		if conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(k.base, "http://")); err == nil {
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nX-Buyer: %s\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{", path, buyer)
			_ = conn.Close()
		}
		return
	}
	r, err := http.NewRequestWithContext(ctx, method, k.base+path, strings.NewReader(body))
	if err != nil {
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Buyer", buyer)
	r.Header.Set("Prefer", "wait=1")
	if response, err := k.client.Do(r); err == nil {
		_ = response.Body.Close()
	}
}

// atRest returns the goroutines and the bytes in use once nothing is going on.
func (k soaker) atRest() (goroutines int, bytes uint64) {
	k.client.CloseIdleConnections()
	runtime.GC()
	runtime.GC() // what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

// After thousands of requests of every kind, and a Redis that hung under some
// of them, there are no more goroutines and no more memory in use than before.
func TestSoakLeavesNothingBehind(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
	s := newShop(t, settings{conns: 4})
	sale := s.sell(50, 1)
	server := httptest.NewServer(s.claims)
	t.Cleanup(server.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	k := soaker{base: server.URL, sale: sale, client: &http.Client{Transport: transport, Timeout: patience}}
	k.round(t, "warm", 1000) // everything that is kept once is there
	goroutines, bytes := 0, uint64(0)
	testenv.Eventually(t, patience, func() error { // until the last connection is gone
		before := goroutines
		goroutines, bytes = k.atRest()
		if goroutines != before {
			return fmt.Errorf("%d goroutines, %d a moment ago", goroutines, before)
		}
		return nil
	})
	k.round(t, "b", 4000)
	s.redis.Pause()
	k.round(t, "c", 32)
	s.redis.Resume()
	k.round(t, "d", 1000)
	const (
		more      = 10      // a connection to a store, say
		moreBytes = 2 << 20 // 400 bytes kept for each request would be more
	)
	testenv.Eventually(t, patience, func() error {
		if now, used := k.atRest(); now > goroutines+more || used > bytes+moreBytes {
			return fmt.Errorf("%d goroutines and %d bytes, before %d and %d", now, used, goroutines, bytes)
		}
		return nil
	})
}
