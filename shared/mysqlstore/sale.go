package mysqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

const saleColumns = `id, sku, price_minor, currency, units, buyer_limit, opens_at, closes_at, pay_window_ms, paused, ticket, epoch, version`

func scanSale(row scanner) (seckill.Sale, error) {
	var s seckill.Sale
	var windowMS int64
	err := row.Scan(&s.ID, &s.SKU, &s.PriceMinor, &s.Currency, &s.Units, &s.Limit,
		&s.OpensAt, &s.ClosesAt, &windowMS, &s.Paused, &s.Ticket, &s.Epoch, &s.Version)
	s.PayWindow = time.Duration(windowMS) * time.Millisecond
	return s, err
}

// PutSale inserts a sale, or amends it; Epoch and Version of the argument are
// ignored, instants and the pay window are cut to milliseconds. It returns the
// sale as it stands now, with a version one higher if anything changed.
//
// Orders keep the price and pay window they were claimed with. A change of
// units moves the stock by the difference, so it never overwrites what was
// sold meanwhile. seckill.ErrConflict: fewer units than live orders hold; or
// another SKU or limit once Redis was built or orders were written. A
// *seckill.FieldError: a value is unacceptable, or the item does not exist.
func (s *Store) PutSale(ctx context.Context, sale seckill.Sale) (seckill.Sale, error) {
	sale.OpensAt, sale.ClosesAt = ms(sale.OpensAt), ms(sale.ClosesAt)
	sale.PayWindow = sale.PayWindow.Truncate(time.Millisecond)
	if err := sale.Validate(); err != nil {
		return seckill.Sale{}, err
	}
	var stored seckill.Sale
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		at, err := now(ctx, tx)
		if err != nil {
			return err
		}
		old, err := saleOf(ctx, tx, sale.ID)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			stored, err = insertSale(ctx, tx, sale, at)
		case err == nil:
			stored, err = amendSale(ctx, tx, old, sale, at)
		}
		return err
	})
	if err != nil {
		return seckill.Sale{}, fmt.Errorf("put sale %s: %w", sale.ID, err)
	}
	return stored, nil
}

func insertSale(ctx context.Context, tx *sql.Tx, sale seckill.Sale, at time.Time) (seckill.Sale, error) {
	if _, err := itemOf(ctx, tx, sale.SKU); err != nil {
		return sale, noSuchItem(err)
	}
	sale.Epoch, sale.Version = 0, 1
	_, err := exec(ctx, tx, `INSERT INTO sales (`+saleColumns+`, created_at, updated_at) VALUES (`+marks(15)+`)`,
		sale.ID, sale.SKU, sale.PriceMinor, sale.Currency, sale.Units, sale.Limit,
		sale.OpensAt, sale.ClosesAt, sale.PayWindow.Milliseconds(), sale.Paused, sale.Ticket, sale.Epoch, sale.Version, at, at)
	if err != nil {
		return sale, raced(err)
	}
	_, err = exec(ctx, tx, `INSERT INTO stock (sale, opened, available, seq, version) VALUES (?, ?, ?, 0, 1)`,
		sale.ID, sale.Units, sale.Units)
	return sale, raced(err)
}

func noSuchItem(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return &seckill.FieldError{Field: "sku", Detail: "no such item"}
	}
	return err
}

// amendSale writes what differs between old, as it was read in tx, and sale.
func amendSale(ctx context.Context, tx *sql.Tx, old, sale seckill.Sale, at time.Time) (seckill.Sale, error) {
	sale.Epoch, sale.Version = old.Epoch, old.Version
	if sale == old {
		return old, nil
	}
	if sale.SKU != old.SKU || sale.Limit != old.Limit {
		if err := mayRebase(ctx, tx, old, sale); err != nil {
			return old, err
		}
	}
	if err := openUnits(ctx, tx, sale.ID, sale.Units-old.Units); err != nil {
		return old, err
	}
	sale.Version++
	return sale, execOnce(ctx, tx, `
		UPDATE sales SET sku = ?, price_minor = ?, currency = ?, units = ?, buyer_limit = ?, opens_at = ?,
			closes_at = ?, pay_window_ms = ?, paused = ?, ticket = ?, version = ?, updated_at = ?
		WHERE id = ? AND version = ? AND epoch = ?`,
		sale.SKU, sale.PriceMinor, sale.Currency, sale.Units, sale.Limit, sale.OpensAt,
		sale.ClosesAt, sale.PayWindow.Milliseconds(), sale.Paused, sale.Ticket, sale.Version, at, sale.ID, old.Version, old.Epoch)
}

// mayRebase allows another SKU or limit only while no claim can have been
// accepted: holdings and live_key of existing orders go by the old limit.
func mayRebase(ctx context.Context, tx *sql.Tx, old, sale seckill.Sale) error {
	if old.Epoch > 0 {
		return fmt.Errorf("%w: SKU and limit are fixed once the sale was prepared", seckill.ErrConflict)
	}
	var id string
	err := get(tx.QueryRowContext(ctx, `SELECT id FROM orders WHERE sale = ? LIMIT 1`, old.ID), &id)
	if err == nil {
		return fmt.Errorf("%w: SKU and limit are fixed once orders exist", seckill.ErrConflict)
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = itemOf(ctx, tx, sale.SKU)
	return noSuchItem(err)
}

func saleOf(ctx context.Context, q querier, id string) (seckill.Sale, error) {
	return scanSale(q.QueryRowContext(ctx, `SELECT `+saleColumns+` FROM sales WHERE id = ?`, id))
}

// Sale returns a sale, or seckill.ErrNotFound.
func (s *Store) Sale(ctx context.Context, id string) (seckill.Sale, error) {
	var sale seckill.Sale
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		sale, err = saleOf(ctx, s.db, id)
		return missing(err)
	})
	if err != nil {
		return seckill.Sale{}, fmt.Errorf("sale %s: %w", id, err)
	}
	return sale, nil
}

// salesMax bounds the lists of sales.
const salesMax = 1000

// SalesOf lists the sales of the first 500 SKUs by opening, at most 1,000.
func (s *Store) SalesOf(ctx context.Context, skus []string) ([]seckill.Sale, error) {
	skus = skus[:min(len(skus), chunkMax)]
	if len(skus) == 0 {
		return nil, nil
	}
	sales, err := s.sales(ctx, `sku IN (`+marks(len(skus))+`)`, anys(skus)...)
	if err != nil {
		return nil, fmt.Errorf("sales of %d skus: %w", len(skus), err)
	}
	return sales, nil
}

// SalesToPrepare lists the sales that Redis should hold: those that open
// within ahead and that it may not have forgotten yet (seckill.KeepAfterClose),
// by MySQL's clock and by opening, at most 1,000.
func (s *Store) SalesToPrepare(ctx context.Context, ahead time.Duration) ([]seckill.Sale, error) {
	var at time.Time
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		at, err = now(ctx, s.db)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sales to prepare: %w", err)
	}
	sales, err := s.sales(ctx, `closes_at >= ? AND opens_at <= ?`, at.Add(-seckill.KeepAfterClose), at.Add(ahead))
	if err != nil {
		return nil, fmt.Errorf("sales to prepare: %w", err)
	}
	return sales, nil
}

func (s *Store) sales(ctx context.Context, where string, args ...any) ([]seckill.Sale, error) {
	var sales []seckill.Sale
	err := s.retry(ctx, func(ctx context.Context) (err error) {
		rows, err := s.db.QueryContext(ctx, `SELECT `+saleColumns+` FROM sales WHERE `+where+
			` ORDER BY opens_at, id LIMIT ?`, append(args, salesMax)...)
		sales, err = all(rows, err, scanSale)
		return err
	})
	return sales, err
}

// NextEpoch moves a sale, as it was read, to a later epoch; that is the fencing
// token of whoever builds the sale in Redis next. The stock row counts the
// claims of an epoch from 0.
// seckill.ErrSuperseded: the epoch or the version is another by now, somebody
// else moved it (or this call did, and its reply was lost).
// seckill.ErrNotFound: there is no such sale.
func (s *Store) NextEpoch(ctx context.Context, sale seckill.Sale, to int64) error {
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		n, err := exec(ctx, tx, `
			UPDATE sales SET epoch = ?, updated_at = UTC_TIMESTAMP(3) WHERE id = ? AND epoch = ? AND version = ?`,
			to, sale.ID, sale.Epoch, sale.Version)
		if err != nil {
			return err
		}
		if n == 1 {
			_, err := exec(ctx, tx, `
				UPDATE stock SET epoch = ?, placed = 0, version = version + 1 WHERE sale = ?`, to, sale.ID)
			return err
		}
		if _, err := saleOf(ctx, tx, sale.ID); err != nil {
			return missing(err)
		}
		return seckill.ErrSuperseded
	})
	if err != nil {
		return fmt.Errorf("next epoch of %s after %d: %w", sale.ID, sale.Epoch, err)
	}
	return nil
}
