// Package mysqld runs a MySQL look-alike inside the process: go-mysql-server on
// its memory engine. It stands apart from the other embedded servers because
// it is large: only what needs it should link it.
package mysqld

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
)

// ConnsMax is how many connections a client may keep: the memory engine loses
// committed updates when transactions overlap. The server itself lets only one
// in; a second waits for the first to go, ten seconds at most, and is closed
// then.
const ConnsMax = 1

const (
	database   = "seckill"
	waitingMax = 64
	waitMax    = 10 * time.Second
)

// Start starts go-mysql-server's memory engine on a free loopback port, with
// one empty database. It returns the DSN and a stop function, which drops
// everything and may be called twice. See ConnsMax.
func Start() (dsn string, stop func(), err error) {
	prepare()
	db := memory.NewDatabase(database)
	db.EnablePrimaryKeyIndexes()
	provider := memory.NewDBProvider(db)
	engine := sqle.NewDefault(provider)

	listen := net.ListenConfig{}
	listener, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("listen for the embedded MySQL server: %w", err)
	}
	addr := listener.Addr().String()
	srv, err := server.NewServer(server.Config{
		Protocol: "tcp", Address: addr, Listener: listener,
		MaxConnections: ConnsMax, MaxWaitConnections: waitingMax, MaxWaitConnectionsTimeout: waitMax,
		MaxLoggedQueryLen: -1, DisableClientMultiStatements: true,
	}, engine, sql.NewContext, memory.NewSessionBuilder(provider), nil)
	if err != nil {
		_ = listener.Close()
		return "", nil, fmt.Errorf("set up the embedded MySQL server: %w", err)
	}
	return "root@tcp(" + addr + ")/" + database, serve(srv, engine), nil
}

// serve accepts in the background and returns what ends it.
func serve(srv *server.Server, engine *sqle.Engine) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Start() // returns nil once the listener is closed
	}()
	return sync.OnceFunc(func() {
		_ = srv.Close()
		<-done
		_ = engine.Close()
	})
}
