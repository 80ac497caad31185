package scenarios_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"seckill/shared/servers"
	"seckill/shared/testenv"
)

// replica is seckill-http's own program in a process of its own.
type replica struct {
	t      *testing.T
	path   string
	env    []string
	base   string
	client *http.Client
	cmd    *exec.Cmd
	// routed says what a router has last seen of its health.
	routed atomic.Bool
}

func (r *replica) start() {
	r.t.Helper()
	r.cmd = exec.CommandContext(context.WithoutCancel(r.t.Context()), r.path)
	r.cmd.Env = r.env
	r.cmd.Stderr = os.Stderr
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(r.t, r.cmd.Start())
	testenv.Eventually(r.t, patience, func() error { return r.ok(r.t.Context(), "/_/ready") })
}

// stopMax is how long a platform lets a function end before it kills it.
const stopMax = 10 * time.Second

// stop is what a platform does to a replica; it must end well, and in time.
func (r *replica) stop() {
	r.t.Helper()
	must(r.t, r.cmd.Process.Signal(syscall.SIGTERM))
	late := time.AfterFunc(stopMax, func() { _ = r.cmd.Process.Kill() })
	defer late.Stop()
	if err := r.cmd.Wait(); err != nil {
		r.t.Errorf("the replica did not end well within %s: %v", stopMax, err)
	}
}

func (r *replica) ok(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %d", path, response.StatusCode)
	}
	return nil
}

// watch looks at the health of the replica as a router does, until ctx ends.
func (r *replica) watch(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.routed.Store(r.ok(ctx, "/_/health") == nil)
		case <-ctx.Done():
			return
		}
	}
}

// claim sends one claim. What the rules of a connection let a client repeat,
// net/http repeats by itself for a request with a key.
func (r *replica) claim(sale, buyer string) (status int, err error) {
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.base+"/sales/"+sale+"/claims", strings.NewReader(`{"quantity":1}`))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Buyer", buyer)
	request.Header.Set("Idempotency-Key", "k")
	response, err := r.client.Do(request)
	if err != nil {
		return 0, err
	}
	_ = response.Body.Close()
	return response.StatusCode, nil
}

func (s *shop) replicas(n int) []*replica {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "seckill-http")
	if out, err := exec.CommandContext(s.t.Context(), "go", "build", "-o", path, "seckill/functions/seckill-http/cmd").CombinedOutput(); err != nil {
		s.t.Fatalf("build: %v\n%s", err, out)
	}
	all := make([]*replica, n)
	for i := range all {
		port, err := servers.FreePort()
		must(s.t, err)
		transport := &http.Transport{MaxIdleConnsPerHost: 8}
		all[i] = &replica{t: s.t, path: path, base: fmt.Sprint("http://127.0.0.1:", port), client: &http.Client{Transport: transport, Timeout: patience}, env: []string{
			"REDIS_ADDRS=" + s.redis.Addr, "NATS_URL=" + s.nats.URL, "AUTH_TRUST_HEADER=X-Buyer",
			fmt.Sprint("PORT=", port), "DRAIN_DELAY=500ms", "SHUTDOWN_TIMEOUT=5s", "LOG_LEVEL=warn",
		}}
		all[i].start()
		s.t.Cleanup(func() {
			transport.CloseIdleConnections()
			all[i].stop()
		})
	}
	return all
}

// Replicas are replaced one after the other while claims come, once with a
// broker that answers nobody: no claim fails, every replica ends in time, and
// every claim that was accepted becomes an order.
func TestRollingRestartUnderLoad(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	sale := s.sell(20_000, 1)
	replicas := s.replicas(2)
	ctx, end := context.WithCancel(t.Context())
	var watching, claiming sync.WaitGroup
	for _, r := range replicas {
		r.routed.Store(true)
		watching.Go(func() { r.watch(ctx) })
	}
	var accepted atomic.Int64
	stop := make(chan struct{})
	for worker := range 4 {
		claiming.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for i := worker; ; i++ {
				select {
				case <-stop:
					return
				case <-pace.C:
				}
				buyer := fmt.Sprint("b-", worker, "-", i)
				r, other := replicas[i%2], replicas[(i+1)%2]
				if !r.routed.Load() {
					r, other = other, r
				}
				status, err := r.claim(sale, buyer)
				var refused *net.OpError
				if errors.As(err, &refused) && refused.Op == "dial" { // nothing was sent: a router asks another
					status, err = other.claim(sale, buyer)
				}
				if err != nil || status != http.StatusAccepted {
					t.Errorf("%s: %d, %v", buyer, status, err)
					continue
				}
				accepted.Add(1)
			}
		})
	}
	for i, r := range append(replicas, replicas[0]) {
		if i == len(replicas) {
			s.nats.Pause()
		}
		r.stop()
		s.nats.Resume()
		r.start()
		testenv.Eventually(t, patience, func() error {
			if !r.routed.Load() {
				return fmt.Errorf("%s is not routed to yet", r.base)
			}
			return nil
		})
	}
	close(stop)
	claiming.Wait()
	end()
	watching.Wait()
	if accepted.Load() == 0 {
		t.Fatal("no claim was accepted")
	}
	s.deliver(5 * time.Second)
	s.rest(sale, accepted.Load())
}

// The process dies at once, with claims decided and the broker silent: nothing
// was published, nobody was answered. Whoever asks again with his key gets one
// claim, and no unit is lost.
func TestClaimProcessIsKilled(t *testing.T) {
	t.Parallel()
	s := newShop(t, settings{})
	const units = 20
	sale := s.sell(units, 1)
	r := s.replicas(1)[0]
	s.nats.Pause()
	var claiming sync.WaitGroup
	for i := range 5 {
		claiming.Go(func() { _, _ = r.claim(sale, fmt.Sprint("b", i)) }) // answered or not
	}
	testenv.Eventually(t, patience, func() error {
		h, err := s.store.Head(t.Context(), sale)
		if err == nil && h.Reserved != 5 {
			err = fmt.Errorf("%d claims are decided", h.Reserved)
		}
		return err
	})
	must(t, r.cmd.Process.Kill())
	if err := r.cmd.Wait(); err == nil {
		t.Error("the killed process ended well")
	}
	claiming.Wait()
	s.nats.Resume()
	r.start()
	for i := range 5 {
		if status, err := r.claim(sale, fmt.Sprint("b", i)); err != nil || status != http.StatusAccepted {
			t.Errorf("b%d again: %d, %v", i, status, err)
		}
	}
	s.deliver(5 * time.Second)
	s.rest(sale, 5)
	if n := s.parked(); n != 0 {
		t.Errorf("%d messages were parked", n)
	}
}
