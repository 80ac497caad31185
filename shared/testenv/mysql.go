package testenv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
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
	require(t, mysqlExec(context.Background(), base, "CREATE DATABASE "+cfg.DBName))
	t.Cleanup(func() {
		if err := mysqlExec(context.Background(), base, "DROP DATABASE "+cfg.DBName); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return cfg.FormatDSN()
}

var sharedMySQL = sync.OnceValues(func() (string, error) {
	p, logins, err := newMySQL()
	if err != nil {
		return "", err
	}
	return logins.app, p.start()
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
	p, logins, err := newMySQL()
	require(t, err)
	s := &MySQLServer{server: server{t: t, process: p}, DSN: logins.app, AdminDSN: logins.admin}
	s.begin()
	return s
}

// logins are the DSNs of one server's users.
type logins struct{ app, admin string }

func newMySQL() (process, logins, error) {
	none := logins{}
	path, err := lookSystem("mariadbd")
	if err != nil {
		return process{}, none, err
	}
	port, err := freePort()
	if err != nil {
		return process{}, none, err
	}
	dir, err := newDir("mysql")
	if err != nil {
		return process{}, none, err
	}
	users, err := prepare(dir, port)
	if err != nil {
		return process{}, none, err
	}
	return process{
		path: path, dir: dir,
		args: append(mysqlFlags(filepath.Join(dir, "data")),
			"--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--socket="+filepath.Join(dir, "socket"),
			"--pid-file="+filepath.Join(dir, "pid"), "--init-file="+filepath.Join(dir, "init.sql"),
			"--default-time-zone=+08:00", "--max-connections=500", "--skip-name-resolve", "--skip-log-bin",
			"--performance-schema=off", "--innodb-flush-log-at-trx-commit=1"),
		ping: func(ctx context.Context) error { return mysqlExec(ctx, users.app, "SELECT 1") },
	}, users, nil
}

// mysqlFlags are those that the installing and the serving run must share.
func mysqlFlags(data string) []string {
	flags := []string{
		"--no-defaults", "--datadir=" + data,
		"--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M",
	}
	if me, err := user.Current(); err == nil {
		flags = append(flags, "--user="+me.Username) // it refuses to be root unasked
	}
	return flags
}

const initSQL = `CREATE DATABASE IF NOT EXISTS seckill;
CREATE USER IF NOT EXISTS 'seckill'@'127.0.0.1' IDENTIFIED BY '%[1]s';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, INDEX, ALTER, REFERENCES, LOCK TABLES, PROCESS ON *.* TO 'seckill'@'127.0.0.1';
CREATE USER IF NOT EXISTS 'admin'@'127.0.0.1' IDENTIFIED BY '%[1]s';
GRANT ALL PRIVILEGES ON *.* TO 'admin'@'127.0.0.1' WITH GRANT OPTION;
`

// prepare lays out an installed data folder and the statements that make the
// users when the server starts.
func prepare(dir string, port int) (logins, error) {
	from, err := installed()
	if err != nil {
		return logins{}, err
	}
	if err := os.CopyFS(filepath.Join(dir, "data"), os.DirFS(from)); err != nil {
		return logins{}, fmt.Errorf("copy the installed mysql folder: %w", err)
	}
	password := random(8)
	statements := fmt.Sprintf(initSQL, password)
	if err := os.WriteFile(filepath.Join(dir, "init.sql"), []byte(statements), 0o600); err != nil {
		return logins{}, fmt.Errorf("write the mysql users: %w", err)
	}
	at := ":" + password + "@tcp(" + hostPort(port) + ")/seckill"
	return logins{app: "seckill" + at, admin: "admin" + at}, nil
}

// installed is a data folder as the installer leaves it, made once: copying it
// is much quicker than installing again.
var installed = sync.OnceValues(func() (string, error) {
	path, err := lookSystem("mariadb-install-db")
	if err != nil {
		return "", err
	}
	dir, err := newDir("installed")
	if err != nil {
		return "", err
	}
	args := append(mysqlFlags(dir), "--auth-root-authentication-method=normal", "--skip-test-db")
	ctx, cancel := context.WithTimeout(context.Background(), startMax)
	defer cancel()
	if out, err := exec.CommandContext(ctx, path, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("install mysql: %w\n%s", err, out)
	}
	return dir, nil
})

// lookSystem finds a program on PATH or among those for administrators.
func lookSystem(name string) (string, error) {
	for _, try := range []string{name, "/usr/sbin/" + name, "/usr/local/sbin/" + name} {
		if path, err := exec.LookPath(try); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, errMissing)
}

// mysqlExec runs one statement over a connection of its own.
func mysqlExec(ctx context.Context, dsn, statement string) error {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("parse the mysql DSN: %w", err)
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.Logger = startMax, startMax, &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return fmt.Errorf("use the mysql DSN: %w", err)
	}
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, statement)
	if err := errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("mysql: %s: %w", statement, err)
	}
	return nil
}
