package embedded

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// natsStartMax bounds how long a NATS server may take until it takes clients.
const natsStartMax = 10 * time.Second

// NATS starts a nats-server with JetStream on a free loopback port, its
// streams in dir. It returns the URL to connect to and a stop function, which
// waits until the server is gone and may be called twice. A server started on
// the same dir later has the same streams.
func NATS(dir string) (url string, stop func(), err error) {
	return NATSAt(dir, server.RANDOM_PORT)
}

// NATSAt is NATS on a port of the caller's choice, so that a server can come
// back where it was.
func NATSAt(dir string, port int) (url string, stop func(), err error) {
	srv, err := server.NewServer(&server.Options{
		ServerName: "seckill", Host: "127.0.0.1", Port: port,
		JetStream: true, StoreDir: dir,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30,
		NoLog: true, NoSigs: true, NoSystemAccount: false,
	})
	if err != nil {
		return "", nil, fmt.Errorf("set up the embedded NATS server: %w", err)
	}
	srv.Start()
	stop = func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	}
	if !srv.ReadyForConnections(natsStartMax) || !srv.JetStreamEnabled() {
		stop()
		return "", nil, errors.New("start the embedded NATS server: it takes no clients or has no JetStream")
	}
	return srv.ClientURL(), stop, nil
}
