package mysqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"

	"seckill/shared/seckill"
)

// counted reports whether an order's units are counted in holdings.
func (o orderRow) counted() bool { return o.limit > 1 }

// heldUnits returns the live units of the buyers in a sale, at most chunkMax
// buyers; one without is absent.
func heldUnits(ctx context.Context, tx *sql.Tx, sale seckill.Sale, buyers []string) (map[string]int64, error) {
	held := make(map[string]int64, len(buyers))
	if len(buyers) == 0 {
		return held, nil
	}
	query := `SELECT buyer, units FROM holdings WHERE sale = ? AND buyer IN (`
	if sale.Limit == 1 {
		query = `SELECT buyer, live_key FROM orders FORCE INDEX (orders_live) WHERE sale = ? AND live_key = 1 AND buyer IN (`
	}
	rows, err := tx.QueryContext(ctx, query+marks(len(buyers))+`)`, anys(buyers, sale.ID)...)
	_, err = all(rows, err, func(row scanner) (struct{}, error) {
		var buyer string
		var units int64
		err := row.Scan(&buyer, &units)
		held[buyer] = units
		return struct{}{}, err
	})
	if err != nil {
		return nil, fmt.Errorf("read held units: %w", err)
	}
	return held, nil
}

// addHeld counts more units for buyers of a sale with a limit above 1, at most
// chunkMax buyers. errRaced: one would pass the limit, which he did not a
// moment ago.
func addHeld(ctx context.Context, tx *sql.Tx, sale seckill.Sale, units map[string]int64) error {
	if len(units) == 0 {
		return nil
	}
	args := make([]any, 0, 4*len(units))
	for _, buyer := range slices.Sorted(maps.Keys(units)) {
		args = append(args, sale.ID, buyer, units[buyer], sale.Limit)
	}
	_, err := exec(ctx, tx, `
		INSERT INTO holdings (sale, buyer, units, buyer_limit) VALUES `+rowMarks(len(units), 4)+`
		ON DUPLICATE KEY UPDATE units = units + VALUES(units)`, args...)
	switch {
	case isHoldingFull(err):
		return fmt.Errorf("%w: %w", errRaced, err)
	case isData(err):
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	return err
}

// saleBuyer names a row of holdings.
type saleBuyer struct{ sale, buyer string }

// giveHeld takes the units of orders that are no longer live off their buyers'
// counts. Buyers with equal numbers share a statement.
func giveHeld(ctx context.Context, tx *sql.Tx, orders []orderRow) error {
	units := map[saleBuyer]int64{}
	for _, o := range orders {
		if o.counted() {
			units[saleBuyer{o.Sale, o.Buyer}] += o.Quantity
		}
	}
	type share struct {
		sale string
		n    int64
	}
	buyers := map[share][]string{}
	for key, n := range units {
		at := share{key.sale, n}
		buyers[at] = append(buyers[at], key.buyer)
	}
	shares := slices.SortedFunc(maps.Keys(buyers), func(a, b share) int {
		if a.sale != b.sale {
			return cmp.Compare(a.sale, b.sale)
		}
		return cmp.Compare(a.n, b.n)
	})
	for _, at := range shares {
		list := slices.Sorted(slices.Values(buyers[at]))
		n, err := exec(ctx, tx, `
			UPDATE holdings SET units = units - ? WHERE sale = ? AND units >= ? AND buyer IN (`+marks(len(list))+`)`,
			anys(list, at.n, at.sale, at.n)...)
		if err != nil {
			return err
		}
		if n != int64(len(list)) {
			return fmt.Errorf("take %d units off %d buyers of %s: %w", at.n, len(list), at.sale, errUncounted)
		}
	}
	return nil
}
