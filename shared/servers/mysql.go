package servers

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/go-sql-driver/mysql"
)

// MySQL is a MariaDB server. It stores every commit at once, so Kill and Start
// lose nothing that was committed. It lies in another time zone than UTC on
// purpose.
type MySQL struct {
	Process
	// DSN names an empty database, as an ordinary user whom read_only stops.
	DSN string
	// AdminDSN names the same database, as a user who may do everything.
	AdminDSN string
}

// NewMySQL prepares a MariaDB server; flags are more of its command line's,
// and win over those that are set here.
func NewMySQL(flags ...string) (*MySQL, error) {
	path, err := look("mariadbd")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := NewDir("mysql")
	if err != nil {
		return nil, err
	}
	m := &MySQL{Process: Process{Path: path, Dir: dir}}
	m.Args = append(mysqlFlags(filepath.Join(dir, "data")),
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--socket="+filepath.Join(dir, "socket"),
		"--pid-file="+filepath.Join(dir, "pid"), "--init-file="+filepath.Join(dir, "init.sql"),
		"--default-time-zone=+08:00", "--max-connections=500", "--skip-name-resolve", "--skip-log-bin",
		"--performance-schema=off", "--innodb-flush-log-at-trx-commit=1")
	m.Args = append(m.Args, flags...)
	m.Ping = func(ctx context.Context) error { return ExecMySQL(ctx, m.DSN, "SELECT 1") }
	return m, m.prepare(port)
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
func (m *MySQL) prepare(port int) error {
	from, err := installed()
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(m.Dir, "data"), os.DirFS(from)); err != nil {
		return fmt.Errorf("copy the installed mysql folder: %w", err)
	}
	password := rand.Text()
	statements := fmt.Sprintf(initSQL, password)
	if err := os.WriteFile(filepath.Join(m.Dir, "init.sql"), []byte(statements), 0o600); err != nil {
		return fmt.Errorf("write the mysql users: %w", err)
	}
	at := ":" + password + "@tcp(" + HostPort(port) + ")/seckill"
	m.DSN, m.AdminDSN = "seckill"+at, "admin"+at
	return nil
}

// installed is a data folder as the installer leaves it, made once: copying it
// is much quicker than installing again.
var installed = sync.OnceValues(func() (string, error) {
	path, err := look("mariadb-install-db")
	if err != nil {
		return "", err
	}
	dir, err := NewDir("installed")
	if err != nil {
		return "", err
	}
	args := append(mysqlFlags(dir), "--auth-root-authentication-method=normal", "--skip-test-db")
	ctx, cancel := context.WithTimeout(context.Background(), StartMax)
	defer cancel()
	if out, err := exec.CommandContext(ctx, path, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("install mysql: %w\n%s", err, out)
	}
	return dir, nil
})

// ExecMySQL runs one statement over a connection of its own.
func ExecMySQL(ctx context.Context, dsn, statement string) error {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("parse the mysql DSN: %w", err)
	}
	cfg.Timeout, cfg.ReadTimeout, cfg.Logger = StartMax, StartMax, &mysql.NopLogger{}
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
