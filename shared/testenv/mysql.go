package testenv

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seckill/shared/servers"
)

// MySQL returns the DSN of a new empty database in a real MariaDB that all
// tests of the binary share (or in TEST_MYSQL_DSN's server, whose user must be
// allowed to create databases). The database is dropped when the test ends.
// The server lies in another time zone than UTC on purpose.
func MySQL(t testing.TB) (dsn string) {
	t.Helper()
	base := os.Getenv("TEST_MYSQL_DSN")
	if base == "" {
		var err error
		base, err = sharedMySQL()
		require(t, err)
	}
	cfg, err := mysql.ParseDSN(base)
	require(t, err)
	cfg.DBName = "test_" + random(8)
	require(t, servers.ExecMySQL(context.Background(), base, "CREATE DATABASE "+cfg.DBName))
	t.Cleanup(func() {
		if err := servers.ExecMySQL(context.Background(), base, "DROP DATABASE "+cfg.DBName); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return cfg.FormatDSN()
}

var sharedMySQL = sync.OnceValues(func() (string, error) {
	m, err := servers.NewMySQL()
	if err != nil {
		return "", err
	}
	return m.DSN, m.Start()
})

// MySQLServer is a test's own MariaDB. It stores every commit at once, so Kill
// and Start lose nothing that was committed.
type MySQLServer struct {
	server
	// DSN names an empty database, as an ordinary user whom read_only stops.
	DSN string
	// AdminDSN names the same database, as a user who may do everything.
	AdminDSN string
}

// MySQLOwn starts a MariaDB for this test alone.
func MySQLOwn(t testing.TB) *MySQLServer {
	t.Helper()
	m, err := servers.NewMySQL()
	require(t, err)
	return &MySQLServer{server: own(t, &m.Process), DSN: m.DSN, AdminDSN: m.AdminDSN}
}
