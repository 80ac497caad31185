package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/shared/seckill"
)

// growth states what a claim and an order cost when sales are small, large and
// many: every unit is claimed by another buyer, then ordered and settled.
func growth(ctx context.Context, s *stage) ([]line, error) {
	var lines []line
	for _, size := range []struct{ sales, units int64 }{
		{1, 1000}, {1, 10_000}, {1, 100_000}, {1, 1_000_000}, {10, 10_000}, {100, 1000},
	} {
		if size.sales*size.units > s.options.growthMax {
			continue
		}
		l, err := s.grow(ctx, int(size.sales), size.units)
		if err != nil {
			return lines, err
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// grown is what one size cost.
type grown struct {
	claim, order   time.Duration // for each
	redis, settled int64         // bytes for each claim, unsettled and settled
	mysql          int64         // bytes for each order
}

func (s *stage) grow(ctx context.Context, sales int, units int64) (line, error) {
	if err := s.clearOrders(ctx); err != nil {
		return line{}, err
	}
	ids := make([]string, sales)
	for i := range ids {
		sale, err := s.sale(ctx, units)
		if err != nil {
			return line{}, err
		}
		ids[i] = sale.ID
	}
	g, err := s.fill(ctx, ids, int(units))
	if err != nil {
		return line{}, err
	}
	text := fmt.Sprintf("claim %s µs, %d bytes in Redis (%d when settled); order %s µs, %d bytes in MySQL",
		amount(float64(g.claim.Nanoseconds())/1000), g.redis, g.settled, amount(float64(g.order.Nanoseconds())/1000), g.mysql)
	quantity := fmt.Sprintf("cost of each: %d × %s units", sales, amount(float64(units)))
	say("%s: %s", quantity, text)
	return line{quantity: quantity, a: text, b: "—", ratio: "—"}, s.clearOrders(ctx)
}

// fill sells the sales out and settles every order. The sales take turns, so
// that all of them are alive at the same time.
func (s *stage) fill(ctx context.Context, sales []string, units int) (g grown, err error) {
	total := int64(len(sales) * units)
	empty, err := s.redisBytes(ctx)
	if err != nil {
		return g, err
	}
	var claims [][]seckill.AcceptedClaim
	began := time.Now()
	const step = 256 // as a busy function's script calls
	for from := 0; from < units; from += step {
		for _, sale := range sales {
			some, err := s.claimFrom(ctx, sale, from, min(step, units-from))
			if err != nil {
				return g, err
			}
			claims = append(claims, some)
		}
	}
	g.claim = time.Since(began) / time.Duration(total)
	full, err := s.redisBytes(ctx)
	if err != nil {
		return g, err
	}
	began = time.Now()
	for _, some := range claims {
		if err := s.order(ctx, some); err != nil {
			return g, err
		}
	}
	g.order = time.Since(began) / time.Duration(total)
	settled, err := s.redisBytes(ctx)
	if err != nil {
		return g, err
	}
	g.redis, g.settled = (full-empty)/total, (settled-empty)/total
	g.mysql, err = s.orderBytes(ctx, total)
	return g, err
}

// order writes claims of one sale as orders and settles them.
func (s *stage) order(ctx context.Context, claims []seckill.AcceptedClaim) error {
	placements, err := s.records.PlaceOrders(ctx, claims)
	if err != nil {
		return err
	}
	settlements := make([]seckill.Settlement, len(placements))
	for i, p := range placements {
		if p.Order.Status != seckill.OrderUnpaid {
			return fmt.Errorf("claim %s became %s %s%s", claims[i].Claim, p.Order.Status, p.Order.Reason, p.Poison)
		}
		settlements[i] = p.Settlement(claims[i])
	}
	_, err = s.reservations.Settle(ctx, claims[0].Sale, settlements)
	return err
}

func (s *stage) redisBytes(ctx context.Context) (int64, error) {
	info, err := s.admin.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	for text := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(text, "used_memory:"); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("redis tells no used_memory")
}

// orderBytes is what the tables take on disk for each order, indexes and the
// outbox included. Below a few thousand orders it is mostly empty pages.
func (s *stage) orderBytes(ctx context.Context, orders int64) (int64, error) {
	db, err := s.openSQL(1)
	if err != nil {
		return 0, err
	}
	defer db.Close() //nolint:errcheck // it only read
	if _, err := db.ExecContext(ctx, "ANALYZE TABLE orders, outbox"); err != nil {
		return 0, err
	}
	var size sql.NullInt64
	err = db.QueryRowContext(ctx, `SELECT SUM(data_length + index_length) FROM information_schema.tables
		WHERE table_schema = DATABASE() AND table_name IN ('orders', 'outbox')`).Scan(&size)
	return size.Int64 / orders, err
}
