// Package drive sends HTTP requests at planned times and records how long each
// answer took. Time is counted from the planned arrival, not from when a
// connection was free for it, so a slow service cannot hide its queue.
package drive

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Client is a service and the connections to it. On a machine that it shares
// with the service the client's own cost counts, so it is fasthttp's: it takes
// about a third of net/http's processor time for a request.
type Client struct {
	host   *fasthttp.HostClient
	name   string // of the host
	prefix string // of every path
}

// answerMax bounds an answer's body in bytes.
const answerMax = 4 << 20

// NewClient returns a client of the service at base, such as
// http://127.0.0.1:8080 or https://shop.example/function, that keeps up to
// conns connections and waits for an answer no longer than timeout.
func NewClient(base string, conns int, timeout time.Duration) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" {
		return nil, fmt.Errorf("%q is not the http or https address of a service", base)
	}
	tls := u.Scheme == "https"
	return &Client{name: u.Host, prefix: strings.TrimSuffix(u.Path, "/"), host: &fasthttp.HostClient{
		Addr: fasthttp.AddMissingPort(u.Host, tls), IsTLS: tls, MaxConns: conns,
		ReadTimeout: timeout, WriteTimeout: timeout, MaxConnWaitTimeout: timeout,
		MaxIdleConnDuration: 5 * time.Second, MaxResponseBodySize: answerMax,
		NoDefaultUserAgentHeader: true, DisablePathNormalizing: true,
		// Whatever was not answered is reported, and asked again by its buyer.
		MaxIdemponentCallAttempts: 1,
	}}, nil
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.host.CloseIdleConnections() }

// Call is one request.
type Call struct {
	Method string
	Path   string
	// Buyer is who asks, as a number of the session's Buyers; Nobody sends no
	// token.
	Buyer int64
	// Headers are sent in addition.
	Headers [][2]string
	// Body is sent unless it is nil, as Type or else as application/json.
	Body []byte
	Type string
}

// Nobody stands for a request without a buyer.
const Nobody = -1

// Session sends one request at a time. It belongs to one goroutine, and the
// body of an answer is good until the next request.
type Session struct {
	client *Client
	signer *signer
	req    *fasthttp.Request
	resp   *fasthttp.Response
}

// NewSession returns a session of one goroutine; buyers may be nil if all its
// calls are Nobody's.
func (c *Client) NewSession(buyers *Buyers) *Session {
	s := &Session{client: c, req: fasthttp.AcquireRequest(), resp: fasthttp.AcquireResponse()}
	if buyers != nil {
		s.signer = buyers.signer()
	}
	return s
}

// Do sends the call and returns the status of its answer. An error means that
// there was none: whether the service acted is unknown.
func (s *Session) Do(call *Call) (int, error) {
	s.req.Reset()
	h := &s.req.Header
	h.SetMethod(call.Method)
	h.SetHost(s.client.name)
	s.req.SetRequestURI(s.client.prefix + call.Path)
	if call.Buyer != Nobody {
		if s.signer == nil {
			return 0, errors.New("the session knows no buyers")
		}
		h.SetBytesV("Authorization", s.signer.bearer(call.Buyer))
	}
	for _, pair := range call.Headers {
		h.Set(pair[0], pair[1])
	}
	if call.Body != nil {
		h.SetContentType(cmp.Or(call.Type, "application/json"))
		s.req.SetBodyRaw(call.Body)
	}
	if err := s.client.host.Do(s.req, s.resp); err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	return s.resp.StatusCode(), nil
}

// Body is the body of the last answer.
func (s *Session) Body() []byte { return s.resp.Body() }

// Header is a header's value in the last answer, empty if it has none.
func (s *Session) Header(name string) string { return string(s.resp.Header.Peek(name)) }
