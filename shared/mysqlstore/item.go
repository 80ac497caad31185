package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

const itemColumns = `sku, name, description, image_url, version, updated_at`

func scanItem(row scanner) (seckill.Item, error) {
	var i seckill.Item
	err := row.Scan(&i.SKU, &i.Name, &i.Description, &i.ImageURL, &i.Version, &i.UpdatedAt)
	return i, err
}

// PutItem inserts an item, or replaces its texts; Version and UpdatedAt of the
// argument are ignored. It returns the item as it stands now, with a version
// one higher if anything changed. Errors: *seckill.FieldError.
func (s *Store) PutItem(ctx context.Context, item seckill.Item) (seckill.Item, error) {
	if err := item.Validate(); err != nil {
		return seckill.Item{}, err
	}
	var stored seckill.Item
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		stored, err = putItem(ctx, tx, item, at)
		return err
	})
	if err != nil {
		return seckill.Item{}, fmt.Errorf("put item %s: %w", item.SKU, err)
	}
	return stored, nil
}

func putItem(ctx context.Context, tx *sql.Tx, item seckill.Item, at time.Time) (seckill.Item, error) {
	old, err := itemOf(ctx, tx, item.SKU)
	if errors.Is(err, sql.ErrNoRows) {
		item.Version, item.UpdatedAt = 1, at
		_, err := exec(ctx, tx, `INSERT INTO items (`+itemColumns+`) VALUES (?, ?, ?, ?, ?, ?)`,
			item.SKU, item.Name, item.Description, item.ImageURL, item.Version, item.UpdatedAt)
		return item, raced(err)
	}
	if err != nil {
		return old, err
	}
	item.Version, item.UpdatedAt = old.Version, old.UpdatedAt
	if item == old {
		return old, nil
	}
	item.Version, item.UpdatedAt = old.Version+1, at
	return item, execOnce(ctx, tx, `
		UPDATE items SET name = ?, description = ?, image_url = ?, version = ?, updated_at = ?
		WHERE sku = ? AND version = ?`,
		item.Name, item.Description, item.ImageURL, item.Version, item.UpdatedAt, item.SKU, old.Version)
}

// raced turns a duplicate key into errRaced: the row was not there a moment ago.
func raced(err error) error {
	if isDuplicate(err) {
		return fmt.Errorf("%w: %w", errRaced, err)
	}
	return err
}

func itemOf(ctx context.Context, q querier, sku string) (seckill.Item, error) {
	return scanItem(q.QueryRowContext(ctx, `SELECT `+itemColumns+` FROM items WHERE sku = ?`, sku))
}

// Item returns an item, or seckill.ErrNotFound.
func (s *Store) Item(ctx context.Context, sku string) (seckill.Item, error) {
	var item seckill.Item
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		item, err = itemOf(ctx, s.db, sku)
		return missing(err)
	})
	if err != nil {
		return seckill.Item{}, fmt.Errorf("item %s: %w", sku, err)
	}
	return item, nil
}

// missing turns "no row" into seckill.ErrNotFound.
func missing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return seckill.ErrNotFound
	}
	return err
}

// Items lists items by SKU, at most limit.
func (s *Store) Items(ctx context.Context, limit int) ([]seckill.Item, error) {
	var items []seckill.Item
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		rows, err := s.db.QueryContext(ctx, `SELECT `+itemColumns+` FROM items ORDER BY sku LIMIT ?`, max(limit, 0))
		items, err = all(rows, err, scanItem)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	return items, nil
}
