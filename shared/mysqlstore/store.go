// Package mysqlstore keeps sales, stock, orders, payments and the outbox in
// MySQL 8 or MariaDB 10.11. MySQL is the record: whatever Redis says, no order
// is written that the rows and constraints here do not allow.
//
// Every method is bounded in time, wraps our own trouble (database away,
// read-only, overloaded, outcome of a COMMIT unknown) in
// seckill.ErrUnavailable, and may be called again with the same arguments.
// Locks are taken in one order everywhere: orders, holdings, outbox, stock (by
// sale), so that transactions queue instead of deadlocking.
package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// Config says where the database is.
type Config struct {
	// DSN is a go-sql-driver data source name. What decides over correctness
	// (time zone, charset, SQL mode, ...) is set by this package whatever the
	// DSN says; see fixDSN.
	DSN string `envconfig:"MYSQL_DSN" secret:"true"`
	// ConnsMax bounds the connections of this process; every replica has its
	// own, so replicas × ConnsMax must stay below the server's max_connections.
	ConnsMax int `envconfig:"MYSQL_CONNS_MAX" default:"8"`
	// ConnsRelease closes a connection after each use, for a server that lets
	// so few in that another process would wait for ever.
	ConnsRelease bool `envconfig:"MYSQL_CONNS_RELEASE"`
}

// connsMaxMax bounds ConnsMax: one hot row gains nothing from more.
const connsMaxMax = 1000

// Validate refuses a configuration that cannot work. It never repeats the DSN,
// which holds a password.
func (c Config) Validate() error {
	if c.DSN == "" {
		return errors.New("MYSQL_DSN must be set")
	}
	if _, err := fixDSN(c.DSN); err != nil {
		return fmt.Errorf("MYSQL_DSN: %w", err)
	}
	if c.ConnsMax < 1 || c.ConnsMax > connsMaxMax {
		return fmt.Errorf("MYSQL_CONNS_MAX must be 1 to %d", connsMaxMax)
	}
	return nil
}

// Store is a pool of connections to one database. It is safe for concurrent
// use; no method needs a second connection while it holds one.
type Store struct {
	db        *sql.DB
	connector *connector
}

// Open returns a store that connects when it is first used, so that a process
// starts whether or not the database is there yet.
func Open(cfg Config) (*Store, error) {
	return open(cfg, lockWaitMax)
}

// open is Open with another bound on waiting for a row lock, in whole seconds.
func open(cfg Config, lockWait time.Duration) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("open mysql: %w", err)
	}
	fixed, err := fixDSN(cfg.DSN)
	if err != nil {
		return nil, fmt.Errorf("open mysql: %w", err)
	}
	connector, err := newConnector(fixed, lockWait)
	if err != nil {
		return nil, fmt.Errorf("open mysql: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(cfg.ConnsMax)
	db.SetMaxIdleConns(cfg.ConnsMax)
	if cfg.ConnsRelease {
		db.SetMaxIdleConns(-1)
	}
	db.SetConnMaxIdleTime(connIdleMax)
	db.SetConnMaxLifetime(connLifeMax)
	return &Store{db: db, connector: connector}, nil
}

// Close ends all connections; calls in flight fail.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close mysql: %w", err)
	}
	return nil
}

// Ping fails when the database does not answer or cannot be written to: a
// server that is read-only is the old writer after a failover. Its connection
// is dropped then, so that the next one may reach the new writer.
func (s *Store) Ping(ctx context.Context) error {
	err := s.retry(ctx, func(ctx context.Context) error {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		defer func() { _ = conn.Close() }()
		var readOnly bool
		if err := get(conn.QueryRowContext(ctx, `SELECT @@GLOBAL.read_only`), &readOnly); err != nil {
			return err
		}
		if readOnly {
			drop(conn)
			return fmt.Errorf("%w: the server is read-only", seckill.ErrUnavailable)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("ping mysql: %w", err)
	}
	return nil
}
