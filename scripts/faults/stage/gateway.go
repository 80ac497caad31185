package stage

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"seckill/scripts/faults/proxy"
)

// Gateway routes requests to the functions as the platforms do, and is the hop
// between buyers, bridge, cron and the functions at which answers get lost.
type Gateway struct {
	URL string

	stage    *Stage
	routes   map[string]*httputil.ReverseProxy
	provider http.Handler
	server   *http.Server
	trouble  atomic.Pointer[Mischief]

	mu     sync.Mutex
	posted []Post // the last ones, to be sent again
	at     int
}

// Post is the body of events as the bridge posted it.
type Post struct {
	Header http.Header
	Body   []byte
}

// Mischief is what the gateway does to requests.
type Mischief struct {
	// Delay is added to each request.
	Delay time.Duration
	// Lose answers of one in so many requests, after the function has done
	// its work; 0 loses none.
	Lose int
	// CutAfter ends an answer after so many bytes of its body; 0 cuts none.
	CutAfter int
	// Refuse answers 503 without asking the function.
	Refuse bool
}

const (
	postsMax = 64
	bodyMax  = 8 << 20
)

var errDropped = errors.New("dropped on purpose")

func newGateway(s *Stage) (*Gateway, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gateway{URL: "http://" + listener.Addr().String(), stage: s, routes: map[string]*httputil.ReverseProxy{}}
	g.server = &http.Server{Handler: g, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = g.server.Serve(listener) }()
	return g, nil
}

func (g *Gateway) route(f *Function) error {
	target, err := url.Parse(f.URL)
	if err != nil {
		return err
	}
	p := httputil.NewSingleHostReverseProxy(target)
	p.Transport = &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Second}
	p.ModifyResponse = func(r *http.Response) error {
		if !g.stage.tell(f.Name, proxy.After, proxy.Step{Name: stepOf(r.Request)}, nil) {
			return errDropped
		}
		if m := g.trouble.Load(); m != nil {
			if m.Lose > 0 && rand.N(m.Lose) == 0 { //nolint:gosec // not a secret
				return errDropped
			}
			if m.CutAfter > 0 {
				r.Body = cut{io.LimitReader(r.Body, int64(m.CutAfter)), r.Body}
			}
		}
		return nil
	}
	p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
		if errors.Is(err, errDropped) {
			panic(http.ErrAbortHandler) // the connection ends without an answer
		}
		w.WriteHeader(http.StatusBadGateway)
	}
	g.routes[f.Name] = p
	return nil
}

// cut is a body that ends early, which ends the connection.
type cut struct {
	io.Reader
	io.Closer
}

// stepOf names a request to a function.
func stepOf(r *http.Request) string {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	name := parts[0]
	if last := parts[len(parts)-1]; len(parts) > 2 && len(last) < 12 {
		name += " " + last
	}
	return "HTTP " + r.Method + " /" + name
}

// function finds the function of a path and the path that it is given.
func (g *Gateway) function(path string) (name, rest string) {
	first, after, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if first == "function" {
		name, rest, _ = strings.Cut(after, "/")
		return name, "/" + rest
	}
	short := map[string]string{"sales": "seckill-http", "items": "item-detail", "orders": "order-http", "payments": "order-http"}
	return short[first], path
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/pay/") {
		g.provider.ServeHTTP(w, r)
		return
	}
	name, path := g.function(r.URL.Path)
	route := g.routes[name]
	if route == nil {
		http.NotFound(w, r)
		return
	}
	if m := g.trouble.Load(); m != nil {
		if m.Refuse {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		wait(r.Context(), m.Delay)
	}
	r.URL.Path = path
	if name == "order-consumer" {
		g.keep(r)
		// The bridge's own step: its post is on the way.
		if !g.stage.tell("nats-bridge", proxy.Before, proxy.Step{Name: "HTTP POST events"}, nil) {
			panic(http.ErrAbortHandler)
		}
	}
	if !g.stage.tell(name, proxy.Before, proxy.Step{Name: stepOf(r)}, nil) {
		panic(http.ErrAbortHandler)
	}
	route.ServeHTTP(w, r)
	if name == "order-consumer" && !g.stage.tell("nats-bridge", proxy.After, proxy.Step{Name: "HTTP POST events"}, nil) {
		panic(http.ErrAbortHandler)
	}
}

func wait(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// keep remembers what the bridge posts.
func (g *Gateway) keep(r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyMax))
	if err != nil {
		return // the function meets the same end
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	g.mu.Lock()
	defer g.mu.Unlock()
	post := Post{Header: r.Header.Clone(), Body: body}
	if len(g.posted) < postsMax {
		g.posted = append(g.posted, post)
		return
	}
	g.posted[g.at%postsMax] = post
	g.at++
}

// Posted returns the last posts of events.
func (g *Gateway) Posted() []Post {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Post(nil), g.posted...)
}

// Set begins a mischief; nil ends it.
func (g *Gateway) Set(m *Mischief) { g.trouble.Store(m) }

func (g *Gateway) close() { _ = g.server.Close() }
