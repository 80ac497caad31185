package campaign

import (
	"context"
	"database/sql"
	"fmt"
)

// The observer sits inside MySQL: whenever a sale's stock row changes, a
// trigger notes what the transaction that changes it sees. It holds the row's
// lock, so every other transaction that moves units of the sale is either
// committed or has not begun to: the notes are the sale's numbers at every
// instant, in their true order, and not samples.
var observer = []string{
	`CREATE TABLE bench_notes (
		id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, sale VARCHAR(64) NOT NULL, opened BIGINT NOT NULL, available BIGINT NOT NULL,
		live BIGINT NOT NULL, over_limit BIGINT NOT NULL, KEY (sale)
	) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin`,
	`CREATE TRIGGER bench_observer AFTER UPDATE ON stock FOR EACH ROW BEGIN
		DECLARE live_units, over_limit BIGINT;
		SELECT COALESCE(SUM(quantity), 0) INTO live_units FROM orders WHERE sale = NEW.sale AND status IN ('unpaid', 'paid');
		SELECT COUNT(*) INTO over_limit FROM (
			SELECT o.buyer FROM orders AS o JOIN sales AS s ON s.id = o.sale
			WHERE o.sale = NEW.sale AND o.status IN ('unpaid', 'paid')
			GROUP BY o.buyer, s.buyer_limit HAVING SUM(o.quantity) > s.buyer_limit) AS holders;
		INSERT INTO bench_notes (sale, opened, available, live, over_limit) VALUES (NEW.sale, NEW.opened, NEW.available, live_units, over_limit);
	END`,
}

func observe(ctx context.Context, db *sql.DB) error {
	for _, statement := range observer {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("set up the observer: %w", err)
		}
	}
	return nil
}

// notes are the observer's counts for a sale.
type notes struct {
	total, oversold, unequal, overLimit int64
}

func readNotes(ctx context.Context, db *sql.DB, sale string) (notes, error) {
	var n notes
	err := db.QueryRowContext(ctx, `
		SELECT COUNT(*), COALESCE(SUM(live > opened), 0), COALESCE(SUM(opened <> available + live), 0), COALESCE(SUM(over_limit > 0), 0)
		FROM bench_notes WHERE sale = ?`, sale).Scan(&n.total, &n.oversold, &n.unequal, &n.overLimit)
	if err != nil {
		return n, fmt.Errorf("read the observer's notes: %w", err)
	}
	return n, nil
}
