package testenv

import (
	"testing"

	"seckill/shared/embedded"
	"seckill/shared/servers"
)

// NATS returns the URL of a real NATS server with JetStream for this test
// alone, inside the test binary and cheap to start. It keeps its streams in
// files until the test ends.
func NATS(t testing.TB) (url string) {
	t.Helper()
	url, stop, err := embedded.NATS(t.TempDir())
	require(t, err)
	t.Cleanup(stop)
	return url
}

// NATSServer is a test's own NATS server in a process of its own, so that it
// can be killed and paused. Its streams outlive Kill, Stop and Start.
type NATSServer struct {
	server
	// URL is the same for the server's whole life.
	URL string

	nats *servers.NATS
}

// NATSOwn starts a NATS server with JetStream for this test alone.
func NATSOwn(t testing.TB) *NATSServer {
	t.Helper()
	n, err := servers.NewNATS()
	require(t, err)
	return &NATSServer{server: own(t, &n.Process), URL: n.URL, nats: n}
}

// Wipe removes the streams of a server that is not running.
func (s *NATSServer) Wipe() {
	s.t.Helper()
	require(s.t, s.nats.Wipe())
}
