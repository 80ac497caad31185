package mysqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"seckill/shared/seckill"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrateMax bounds Migrate, migrateWait the wait for another process's.
const (
	migrateMax  = 5 * time.Minute
	migrateWait = time.Minute
)

// Migrate brings the schema up to date, one file of migrations/ after the
// other in the order of their names. It may run twice, and in several
// processes at once: one of them works under a lock of the server, the others
// wait up to a minute for it. A crash half-way is finished by the next run,
// as each statement of a migration may be repeated.
func (s *Store) Migrate(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, migrateMax)
	defer cancel()
	if err := s.migrate(ctx); err != nil {
		return fmt.Errorf("migrate: %w", blame(err))
	}
	return nil
}

func (s *Store) migrate(ctx context.Context) (err error) {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	unlock, err := lockMigrations(ctx, conn)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := conn.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS schema_migrations (
			name       VARCHAR(64) NOT NULL,
			applied_at DATETIME(3) NOT NULL,
			PRIMARY KEY (name)
		) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin`); err != nil {
		return fmt.Errorf("create schema_migrations: %w", err)
	}
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return fmt.Errorf("list migrations: %w", err)
	}
	for _, file := range files { // in the order of their names
		if err := applyMigration(ctx, conn, file.Name()); err != nil {
			return fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
	return nil
}

// The lock is the server's, so it bears the name of the database.
const (
	takeMigrations = `SELECT GET_LOCK(CONCAT('seckill.', SHA1(DATABASE())), ?)`
	freeMigrations = `SELECT RELEASE_LOCK(CONCAT('seckill.', SHA1(DATABASE())))`
)

// lockMigrations lets one process at a time into this database's migrations.
func lockMigrations(ctx context.Context, conn *sql.Conn) (unlock func(), err error) {
	const turn = ioMax / 2 // a silent wait longer than ioMax would be taken for a dead connection
	var got sql.NullInt64
	for waited := time.Duration(0); waited < migrateWait; waited += turn {
		if err := get(conn.QueryRowContext(ctx, takeMigrations, int64(turn.Seconds())), &got); err != nil {
			return nil, fmt.Errorf("take the lock: %w", err)
		}
		if got.Int64 == 1 {
			return func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ioMax)
				defer cancel()
				_ = get(conn.QueryRowContext(ctx, freeMigrations), &got) // else the connection's end frees it
			}, nil
		}
	}
	return nil, fmt.Errorf("%w: another process migrates", seckill.ErrUnavailable)
}

// applyMigration runs one file unless it is noted as done.
func applyMigration(ctx context.Context, conn *sql.Conn, name string) error {
	var at time.Time
	err := get(conn.QueryRowContext(ctx, `SELECT applied_at FROM schema_migrations WHERE name = ?`, name), &at)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	text, err := migrationFiles.ReadFile("migrations/" + name)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	statements := strings.SplitAfter(string(text), ";\n")
	for i, statement := range statements {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		there, err := done(ctx, conn, statement)
		if err == nil && !there {
			_, err = conn.ExecContext(ctx, statement)
		}
		if err != nil {
			return fmt.Errorf("statement %d: %w", i+1, err)
		}
	}
	if _, err := conn.ExecContext(ctx, `
		INSERT INTO schema_migrations (name, applied_at) VALUES (?, UTC_TIMESTAMP(3))`, name); err != nil {
		return fmt.Errorf("note it as done: %w", err)
	}
	return nil
}

// columnAdded finds the column that a statement adds: MySQL cannot say ADD
// COLUMN IF NOT EXISTS, so it is looked for before.
var columnAdded = regexp.MustCompile(`(?m)^ALTER TABLE (\w+) ADD COLUMN (\w+)`)

// done reports whether a statement adds a column that is there, from a run
// that crashed.
func done(ctx context.Context, conn *sql.Conn, statement string) (bool, error) {
	added := columnAdded.FindStringSubmatch(statement)
	if added == nil {
		return false, nil
	}
	var n int64
	err := get(conn.QueryRowContext(ctx, `
		SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = DATABASE() AND table_name = ? AND column_name = ?`, added[1], added[2]), &n)
	return n > 0, err
}
