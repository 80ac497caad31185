package stage

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"seckill/scripts/faults/proxy"
	"seckill/shared/servers"
)

// Function is a function's program as a child process, with a proxy of its own
// to each store. It keeps its port when it is started again.
type Function struct {
	Name string
	// URL is where it serves.
	URL string
	// Redis, MySQL and NATS are its ways to the stores.
	Redis, MySQL, NATS *proxy.Proxy

	mu      sync.Mutex
	process *servers.Process
	up      bool
	back    sync.WaitGroup // crashed, not yet started again
}

// Watch is told of each step of a function; see proxy.Watch.
type Watch func(function string, when proxy.When, step proxy.Step, reply []byte) bool

func (s *Stage) newFunction(name, path string) (*Function, error) {
	port, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := servers.NewDir(name)
	if err != nil {
		return nil, err
	}
	f := &Function{Name: name, URL: "http://" + servers.HostPort(port)}
	for _, way := range []struct {
		proxy    **proxy.Proxy
		store    string
		protocol proxy.Protocol
	}{
		{&f.Redis, s.Redis.Addr, proxy.Redis},
		{&f.MySQL, s.mysqlAddr, proxy.MySQL},
		{&f.NATS, s.natsAddr, proxy.NATS},
	} {
		*way.proxy, err = proxy.Listen(proxy.Config{
			Store: way.store, Protocol: way.protocol,
			Watch: func(when proxy.When, step proxy.Step, reply []byte) bool { return s.tell(name, when, step, reply) },
		})
		if err != nil {
			return nil, err
		}
	}
	f.process = &servers.Process{
		Path: path, Dir: dir, Env: append(s.env(f), "PORT="+strconv.Itoa(port)),
		Ping: func(ctx context.Context) error { return says200(ctx, f.URL+"/_/health") },
	}
	return f, nil
}

// Ready is nil while the program serves and reaches its stores.
func (f *Function) Ready(ctx context.Context) error { return says200(ctx, f.URL+"/_/ready") }

func says200(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask %s: %w", url, err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is answered %d", url, response.StatusCode)
	}
	return nil
}

// Start runs the program, if it does not run, and waits until it serves.
func (f *Function) Start() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.up {
		return nil
	}
	f.up = true
	err := f.process.Start()
	f.up = err == nil
	return err
}

// Kill ends the program at once (kill -9) and reports whether it ran.
func (f *Function) Kill() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.up {
		return false
	}
	f.up = false
	f.process.Kill()
	return true
}

// Crash kills the program; a platform starts it again after a while.
func (f *Function) Crash(after time.Duration) {
	if !f.Kill() {
		return
	}
	f.back.Go(func() {
		timer := time.NewTimer(after)
		defer timer.Stop()
		<-timer.C
		// One that does not start is down, and everything says so.
		_ = f.Start()
	})
}

// Back waits until the program is up again.
func (f *Function) Back() { f.back.Wait() }

// Pause freezes the program (SIGSTOP).
func (f *Function) Pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.up {
		f.process.Pause()
	}
}

// Resume lets a frozen program go on (SIGCONT).
func (f *Function) Resume() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.up {
		f.process.Resume()
	}
}

// LogEnd is the end of what the program said.
func (f *Function) LogEnd() string { return f.process.LogEnd() }

// Ways are the function's proxies.
func (f *Function) Ways() []*proxy.Proxy { return []*proxy.Proxy{f.Redis, f.MySQL, f.NATS} }

func (f *Function) remove() {
	f.back.Wait()
	f.Kill()
	for _, way := range f.Ways() {
		way.Close()
	}
}
