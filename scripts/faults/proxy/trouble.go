package proxy

import "time"

// Trouble is what a proxy does to the bytes. It may not be changed once Set.
type Trouble struct {
	// Delay is added to each piece in both directions.
	Delay time.Duration
	// CutAfter ends a connection once so many bytes of answers went to the
	// function since the trouble began, in the middle of an answer if need be;
	// 0 cuts nothing.
	CutAfter int64
	// DropReplies passes requests on and swallows what comes back.
	DropReplies bool
	// StallRequests and StallReplies hold one direction back until the trouble
	// ends; then it all arrives.
	StallRequests, StallReplies bool
	// Refuse takes no new connections.
	Refuse bool

	over chan struct{}
}

// Set begins a trouble; one that was there ends.
func (p *Proxy) Set(t Trouble) {
	t.over = make(chan struct{})
	p.begin(&t)
}

// Heal ends the trouble. Connections that miss bytes are ended.
func (p *Proxy) Heal() { p.begin(nil) }

func (p *Proxy) begin(t *Trouble) {
	if old := p.trouble.Swap(t); old != nil {
		close(old.over)
	}
	for _, c := range p.all() {
		c.answered.Store(0)
		if c.spoiled.Load() {
			c.end()
		}
	}
}

// Reset ends every connection in the way that a crashed host does.
func (p *Proxy) Reset() {
	for _, c := range p.all() {
		reset(c.function)
		reset(c.store)
	}
}

func (p *Proxy) all() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		list = append(list, c)
	}
	return list
}

// obstacle waits as the trouble asks, and returns it; nil if there is none, or
// none any more.
func (c *conn) obstacle(stalled func(*Trouble) bool) *Trouble {
	t := c.proxy.trouble.Load()
	if t == nil {
		return nil
	}
	if stalled(t) {
		<-t.over
		return nil
	}
	if t.Delay > 0 {
		timer := time.NewTimer(t.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-t.over:
		}
	}
	return t
}
