package mysqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
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
		return err
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
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := applyMigration(ctx, conn, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// lockMigrations takes the server-wide lock named after the database.
func lockMigrations(ctx context.Context, conn *sql.Conn) (unlock func(), err error) {
	// ioMax ends a silent wait, so the lock is asked for in shorter turns.
	const turn = ioMax / 2
	for waited := time.Duration(0); waited < migrateWait; waited += turn {
		var got sql.NullInt64
		err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(CONCAT('seckill.', SHA1(DATABASE())), ?)`,
			int64(turn.Seconds())).Scan(&got)
		if err != nil {
			return nil, fmt.Errorf("take the migration lock: %w", err)
		}
		if got.Int64 == 1 {
			return func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ioMax)
				defer cancel()
				_ = conn.QueryRowContext(ctx, `SELECT RELEASE_LOCK(CONCAT('seckill.', SHA1(DATABASE())))`).Scan(&got)
			}, nil
		}
	}
	return nil, fmt.Errorf("%w: another process migrates", seckill.ErrUnavailable)
}

// applyMigration runs one file unless it is noted as done.
func applyMigration(ctx context.Context, conn *sql.Conn, name string) error {
	var at time.Time
	err := conn.QueryRowContext(ctx, `SELECT applied_at FROM schema_migrations WHERE name = ?`, name).Scan(&at)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	text, err := migrationFiles.ReadFile(name)
	if err != nil {
		return err
	}
	for _, statement := range strings.SplitAfter(string(text), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, `INSERT INTO schema_migrations (name, applied_at) VALUES (?, UTC_TIMESTAMP(3))`, name)
	return err
}
