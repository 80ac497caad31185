package mysqlstore

import (
	"bytes"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// proxy stands between a store and its server and can cut a connection at the
// next statement that contains a text.
type proxy struct {
	listener net.Listener
	server   string
	done     sync.WaitGroup
	// cut is the text to cut at, cutAfter whether the server still gets it.
	cut      atomic.Pointer[string]
	cutAfter atomic.Bool
	cuts     atomic.Int64
	// sent counts the statements that contain watched.
	watched string
	sent    atomic.Int64
}

// throughProxy returns a proxy and the DSN of the same database through it.
func throughProxy(t *testing.T, dsn string) (*proxy, string) {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: cfg.Addr}
	p.done.Go(p.serve)
	t.Cleanup(func() {
		_ = listener.Close()
		p.done.Wait()
	})
	cfg.Addr = listener.Addr().String()
	return p, cfg.FormatDSN()
}

// cutAt makes the next statement with text the last of its connection, before
// or after the server has done it.
func (p *proxy) cutAt(text string, after bool) {
	p.cutAfter.Store(after)
	p.cut.Store(&text)
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server) //nolint:noctx // ends with its peer
		if err != nil {
			_ = client.Close()
			continue
		}
		var mute atomic.Bool // the server's next answer ends the connection
		p.done.Go(func() { p.pipe(client, server, func(b []byte) bool { return p.request(b, &mute) }) })
		p.done.Go(func() { p.pipe(server, client, func([]byte) bool { return !mute.Load() }) })
	}
}

// request looks at what the client sends; false cuts the connection.
func (p *proxy) request(b []byte, mute *atomic.Bool) bool {
	if p.watched != "" && bytes.Contains(b, []byte(p.watched)) {
		p.sent.Add(1)
	}
	text := p.cut.Load()
	if text == nil || !strings.Contains(string(b), *text) || !p.cut.CompareAndSwap(text, nil) {
		return true
	}
	p.cuts.Add(1)
	mute.Store(true)
	return p.cutAfter.Load()
}

// pipe copies until either side ends or pass says so, then ends both.
func (p *proxy) pipe(from, to net.Conn, pass func([]byte) bool) {
	defer func() { _ = from.Close() }()
	defer func() { _ = to.Close() }()
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		if err != nil || !pass(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
