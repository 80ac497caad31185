package mysqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Bounds in time. A network that swallows packets is noticed after ioMax, a
// row that somebody keeps locked after lockWaitMax; whatever happens, a call
// ends after callMax (Snapshot and Migrate have their own bounds).
const (
	dialMax     = 3 * time.Second
	ioMax       = 10 * time.Second
	callMax     = 10 * time.Second
	lockWaitMax = 3 * time.Second
	connIdleMax = time.Minute
	connLifeMax = 10 * time.Minute
)

// sqlMode refuses what would be cut, rounded to zero or guessed otherwise.
const sqlMode = `'STRICT_ALL_TABLES,STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,NO_ENGINE_SUBSTITUTION'`

// fixDSN parses a DSN and sets what must not depend on who wrote it.
//
// Parameters are interpolated by the client: one round trip a statement, and
// no prepared statement that could leak on the server. The connection charset
// utf8mb4 makes that safe, and values are bound as integers, strings and
// times only, which read the same both ways.
func fixDSN(dsn string) (*mysql.Config, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if cfg.DBName == "" {
		return nil, errors.New("names no database")
	}
	cfg.ParseTime, cfg.Loc = true, time.UTC
	cfg.ClientFoundRows = false // affected rows are rows changed: a guard that changed nothing lost
	cfg.InterpolateParams = true
	cfg.MultiStatements = false
	cfg.AllowAllFiles = false
	cfg.CheckConnLiveness = true // an idle connection the server closed is replaced before use
	cfg.RejectReadOnly = true    // errors 1290, 1792 and 1836 drop the connection: the writer moved
	cfg.Timeout, cfg.ReadTimeout, cfg.WriteTimeout = dialMax, ioMax, ioMax
	cfg.Logger = &mysql.NopLogger{} // what it prints comes back as an error too
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params["time_zone"] = "'+00:00'"
	cfg.Params["sql_mode"] = sqlMode
	if err := cfg.Apply(mysql.Charset("utf8mb4", "utf8mb4_bin")); err != nil {
		return nil, fmt.Errorf("set charset: %w", err)
	}
	return cfg, nil
}

// connector sets up each new connection; DSN parameters cannot, because the
// variable's name differs between MySQL 8 and MariaDB 10.11.
type connector struct {
	driver.Connector
	setup []string
	// embedded is set once the server proved to be the embedded engine.
	embedded atomic.Bool
}

func newConnector(cfg *mysql.Config, lockWait time.Duration) (*connector, error) {
	inner, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return &connector{Connector: inner, setup: []string{
		`SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED`,
		fmt.Sprintf(`SET SESSION innodb_lock_wait_timeout = %d`, int(lockWait.Seconds())),
	}}, nil
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	execer, ok := conn.(driver.ExecerContext)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("the driver cannot execute statements directly")
	}
	for _, statement := range c.setup {
		_, err := execer.ExecContext(ctx, statement, nil)
		switch {
		case isCode(err, codeUnknown): // it has no row locks to wait for
			c.embedded.Store(true)
		case err != nil:
			_ = conn.Close()
			return nil, fmt.Errorf("set up connection: %w", err)
		}
	}
	return conn, nil
}

// drop makes the pool forget the connection.
func drop(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
