// Package proxy stands between a function and a store. It spoils the bytes on
// their way (delay, cut, silence, refuse, reset), and it reads enough of the
// protocol to tell which request a function sends and which bytes answer it, so
// that a process can be killed exactly before or after one step. A proxy that
// knows bytes alone, as toxiproxy, cannot do the latter.
package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// When is the side of a step at which something happens.
type When string

// Before: the request has arrived here and the store does not have it. After:
// the store has answered and the function does not know it.
const (
	Before When = "before"
	After  When = "after"
)

// Step is a request that the protocol recognises.
type Step struct {
	// Name says what it does; empty for one that is of no interest.
	Name string
	// Args are the arguments of a Redis script behind its keys.
	Args []string
}

// Watch is told of each step twice; reply is what came back. False ends the
// connection without passing on what was just told of.
type Watch func(when When, step Step, reply []byte) bool

// Config says what a proxy stands between.
type Config struct {
	Store    string // address of the server
	Protocol Protocol
	Watch    Watch
}

// Protocol returns the reader of one connection.
type Protocol func() Reader

// Reader cuts the bytes of one connection into frames.
type Reader interface {
	// Request reads what the function sends next.
	Request(r *bufio.Reader) (Frame, error)
	// Reply reads what the store sends next.
	Reply(r *bufio.Reader) (Frame, error)
}

// Frame is a piece of a connection that is passed on whole.
type Frame struct {
	Data []byte
	Step Step // of a request
	// Token joins a reply with its request, where a connection has several at
	// a time.
	Token string
	// Mute: no reply is coming (to a request), or this is none (for a reply).
	Mute bool
	// Failed: the reply says that the request was not done.
	Failed bool
}

// Proxy passes connections of one function on to one store.
type Proxy struct {
	config   Config
	listener net.Listener
	trouble  atomic.Pointer[Trouble]

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// conn is a connection of the function and the one to the store.
type conn struct {
	proxy    *Proxy
	function net.Conn
	store    net.Conn
	spoiled  atomic.Bool  // bytes are missing: it must end with the trouble
	answered atomic.Int64 // bytes that the function got since the trouble began

	mu      sync.Mutex
	waiting map[string][]Step // for their replies, by token
}

// bufferSize is the longest protocol line, and the largest piece of a reply.
const bufferSize = 64 << 10

// Listen starts a proxy on a free loopback port.
func Listen(config Config) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", config.Store, err)
	}
	p := &Proxy{config: config, listener: listener, conns: make(map[*conn]struct{})}
	go p.serve()
	return p, nil
}

// Addr is where the function finds the store.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Reset()
}

func (p *Proxy) serve() {
	for {
		function, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(function)
	}
}

// join connects to the store and passes bytes in both directions.
func (p *Proxy) join(function net.Conn) {
	if t := p.trouble.Load(); t != nil && t.Refuse {
		reset(function)
		return
	}
	store, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), "tcp", p.config.Store)
	if err != nil {
		reset(function)
		return
	}
	c := &conn{proxy: p, function: function, store: store, waiting: make(map[string][]Step)}
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	reader := p.config.Protocol()
	go c.requests(reader)
	c.replies(reader)
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
}

func (c *conn) end() {
	_ = c.function.Close()
	_ = c.store.Close()
}

// requests passes on what the function sends.
func (c *conn) requests(reader Reader) {
	defer c.end()
	from := bufio.NewReaderSize(c.function, bufferSize)
	for {
		frame, err := reader.Request(from)
		if err != nil || !c.request(frame) {
			return
		}
	}
}

func (c *conn) request(frame Frame) bool {
	t := c.obstacle(func(t *Trouble) bool { return t.StallRequests })
	watched := frame.Step.Name != "" && c.proxy.config.Watch != nil
	if watched && !c.proxy.config.Watch(Before, frame.Step, nil) {
		return false
	}
	if watched && !frame.Mute {
		c.mu.Lock()
		c.waiting[frame.Token] = append(c.waiting[frame.Token], frame.Step)
		c.mu.Unlock()
	}
	if t != nil && t.DropReplies {
		c.spoiled.Store(true)
	}
	if _, err := c.store.Write(frame.Data); err != nil {
		return false
	}
	return !watched || !frame.Mute || c.proxy.config.Watch(After, frame.Step, nil)
}

// replies passes on what the store sends.
func (c *conn) replies(reader Reader) {
	defer c.end()
	from := bufio.NewReaderSize(c.store, bufferSize)
	for {
		frame, err := reader.Reply(from)
		if err != nil || !c.reply(frame) {
			return
		}
	}
}

func (c *conn) reply(frame Frame) bool {
	t := c.obstacle(func(t *Trouble) bool { return t.StallReplies })
	if !c.settled(frame) {
		return false
	}
	data := frame.Data
	if t != nil && t.DropReplies {
		c.spoiled.Store(true)
		return true
	}
	if t != nil && t.CutAfter > 0 {
		left := t.CutAfter - c.answered.Load()
		if left <= int64(len(data)) {
			_, _ = c.function.Write(data[:max(left, 0)])
			return false
		}
		c.answered.Add(int64(len(data)))
	}
	_, err := c.function.Write(data)
	return err == nil
}

// settled tells the watch of the steps that a reply belongs to.
func (c *conn) settled(frame Frame) bool {
	if frame.Mute {
		return true
	}
	c.mu.Lock()
	steps := c.waiting[frame.Token]
	delete(c.waiting, frame.Token)
	c.mu.Unlock()
	if frame.Failed {
		return true
	}
	for _, step := range steps {
		if !c.proxy.config.Watch(After, step, frame.Data) {
			return false
		}
	}
	return true
}

// chunk reads what is there, at least one byte.
func chunk(r *bufio.Reader) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	data := make([]byte, r.Buffered())
	_, err := io.ReadFull(r, data)
	return data, err
}

func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // RST instead of FIN
	}
	_ = c.Close()
}
