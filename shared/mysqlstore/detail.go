package mysqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"seckill/shared/seckill"
)

// ItemWithSales returns an item and its newest sales, at most salesMax, by
// opening, all read by one statement and so as of one instant; or
// seckill.ErrNotFound.
func (s *Store) ItemWithSales(ctx context.Context, sku string, salesMax int) (seckill.Item, []seckill.Sale, error) {
	var lines []detailLine
	err := s.retry(ctx, func(ctx context.Context) error {
		rows, err := s.db.QueryContext(ctx, `
			SELECT i.sku, i.name, i.description, i.image_url, i.version, i.updated_at,
				s.id, s.price_minor, s.currency, s.units, s.buyer_limit, s.opens_at, s.closes_at,
				s.pay_window_ms, s.paused, s.ticket, s.epoch, s.version
			FROM items i LEFT JOIN sales s ON s.sku = i.sku
			WHERE i.sku = ? ORDER BY s.opens_at DESC, s.id DESC LIMIT ?`, sku, salesMax)
		lines, err = all(rows, err, scanDetail)
		return err
	})
	if err == nil && len(lines) == 0 {
		err = seckill.ErrNotFound
	}
	if err != nil {
		return seckill.Item{}, nil, fmt.Errorf("item %s with sales: %w", sku, err)
	}
	var sales []seckill.Sale
	for _, line := range slices.Backward(lines) {
		if line.hasSale {
			sales = append(sales, line.sale)
		}
	}
	return lines[0].item, sales, nil
}

// detailLine is an item with one of its sales, if it has any.
type detailLine struct {
	item    seckill.Item
	sale    seckill.Sale
	hasSale bool
}

func scanDetail(row scanner) (detailLine, error) {
	var l detailLine
	var id, currency, ticket sql.NullString
	var price, units, limit, window, epoch, version sql.NullInt64
	var opensAt, closesAt sql.NullTime
	var paused sql.NullBool
	err := row.Scan(
		&l.item.SKU, &l.item.Name, &l.item.Description, &l.item.ImageURL, &l.item.Version, &l.item.UpdatedAt,
		&id, &price, &currency, &units, &limit, &opensAt, &closesAt, &window, &paused, &ticket, &epoch, &version)
	l.hasSale = id.Valid
	l.sale = seckill.Sale{
		ID: id.String, SKU: l.item.SKU, PriceMinor: price.Int64, Currency: currency.String, Units: units.Int64,
		Limit: limit.Int64, OpensAt: opensAt.Time, ClosesAt: closesAt.Time,
		PayWindow: time.Duration(window.Int64) * time.Millisecond, Paused: paused.Bool,
		Ticket: seckill.TicketKind(ticket.String),
		Epoch:  epoch.Int64, Version: version.Int64,
	}
	return l, err
}
