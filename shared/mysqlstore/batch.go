package mysqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"seckill/shared/seckill"
)

// batch is one transaction's view of the claims it places, at most chunkMax.
type batch struct {
	claims []seckill.AcceptedClaim
	at     time.Time
	// written are the orders that exist, by id, as far as they were looked
	// at; judge adds its own.
	written map[string]orderRow
	sales   map[string]*saleBatch
	// placed answers claims by position, fresh are the rows to insert.
	placed []seckill.Placement
	fresh  []orderRow
}

// saleBatch is a batch's share of one sale.
type saleBatch struct {
	sale   seckill.Sale
	known  bool
	wanted int64 // units asked for by claims without an order
	// available is the stock: a hint until exact, when the row is locked.
	available int64
	exact     bool
	held      map[string]int64 // live units by buyer
	added     map[string]int64 // units taken now by buyer
	taken     int64
	seen      seen // of the fresh orders
	fresh     []orderRow
}

// readBatch reads what judging needs, without a lock: the sales, and if look is
// set also the claims' orders and what their buyers hold.
func readBatch(ctx context.Context, tx *sql.Tx, claims []seckill.AcceptedClaim, look bool) (*batch, error) {
	at, err := now(ctx, tx)
	if err != nil {
		return nil, err
	}
	b := &batch{
		claims: claims, at: at, written: make(map[string]orderRow, len(claims)),
		sales: map[string]*saleBatch{}, placed: make([]seckill.Placement, len(claims)),
	}
	if look {
		if err := b.readOrders(ctx, tx); err != nil {
			return nil, fmt.Errorf("read orders: %w", err)
		}
	}
	buyers := b.groupBySale()
	if len(b.sales) == 0 {
		return b, nil
	}
	if err := b.readSales(ctx, tx); err != nil {
		return nil, fmt.Errorf("read sales: %w", err)
	}
	for _, s := range b.inOrder() {
		if !look || !s.known {
			continue
		}
		if s.held, err = heldUnits(ctx, tx, s.sale, buyers[s.sale.ID]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (b *batch) readOrders(ctx context.Context, tx *sql.Tx) (err error) {
	ids := make([]string, len(b.claims))
	for i, c := range b.claims {
		ids[i] = c.Claim
	}
	b.written, err = ordersByID(ctx, tx, ids)
	return err
}

// groupBySale sums up the claims without an order, and lists their buyers.
func (b *batch) groupBySale() map[string][]string {
	buyers := map[string][]string{}
	for _, c := range b.claims {
		if _, ok := b.written[c.Claim]; ok {
			continue
		}
		s := b.sales[c.Sale]
		if s == nil {
			s = &saleBatch{sale: seckill.Sale{ID: c.Sale}, held: map[string]int64{}, added: map[string]int64{}}
			b.sales[c.Sale] = s
		}
		s.wanted += c.Quantity
		buyers[c.Sale] = append(buyers[c.Sale], c.Buyer)
	}
	return buyers
}

func (b *batch) readSales(ctx context.Context, tx *sql.Tx) error {
	ids := slices.Sorted(maps.Keys(b.sales))
	rows, err := tx.QueryContext(ctx, `
		SELECT s.id, s.sku, s.buyer_limit, k.available FROM sales AS s JOIN stock AS k ON k.sale = s.id
		WHERE s.id IN (`+marks(len(ids))+`)`, anys(ids)...)
	_, err = all(rows, err, func(row scanner) (struct{}, error) {
		var sale seckill.Sale
		var available int64
		err := row.Scan(&sale.ID, &sale.SKU, &sale.Limit, &available)
		if s := b.sales[sale.ID]; s != nil {
			s.sale, s.available, s.known = sale, available, true
		}
		return struct{}{}, err
	})
	return err
}

// inOrder lists the sales by id, the order in which their rows are locked.
func (b *batch) inOrder() []*saleBatch {
	return slices.SortedFunc(maps.Values(b.sales), func(x, y *saleBatch) int { return cmp.Compare(x.sale.ID, y.sale.ID) })
}

// mayRunShort reports whether a sale seems to have fewer units than wanted.
func (b *batch) mayRunShort() bool {
	for _, s := range b.sales {
		if s.known && s.wanted > s.available {
			return true
		}
	}
	return false
}

// lockStock locks the stock rows until the end of the transaction.
func (b *batch) lockStock(ctx context.Context, tx *sql.Tx) error {
	for _, s := range b.inOrder() {
		if !s.known {
			continue
		}
		err := get(tx.QueryRowContext(ctx, `SELECT available FROM stock WHERE sale = ? FOR UPDATE`, s.sale.ID), &s.available)
		if err != nil {
			return fmt.Errorf("lock stock of %s: %w", s.sale.ID, err)
		}
		s.exact = true
	}
	return nil
}

// judge decides the claims of each sale in the order they were accepted in.
func (b *batch) judge() {
	order := make([]int, len(b.claims))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		x, y := &b.claims[i], &b.claims[j]
		return cmp.Or(cmp.Compare(x.Sale, y.Sale), cmp.Compare(x.Seq, y.Seq))
	})
	for _, i := range order {
		b.placed[i] = b.judgeOne(b.claims[i])
	}
}

func (b *batch) judgeOne(c seckill.AcceptedClaim) seckill.Placement {
	if o, ok := b.written[c.Claim]; ok {
		if !o.matches(c) {
			return seckill.Placement{Poison: "an order with this id exists for another sale, buyer or quantity"}
		}
		return seckill.Placement{Order: o.Order}
	}
	s := b.sales[c.Sale]
	if s.known && s.sale.SKU != c.SKU {
		return seckill.Placement{Poison: "the sale sells another SKU"}
	}
	o := s.take(c, b.at)
	s.see(c)
	s.fresh = append(s.fresh, o)
	b.written[c.Claim] = o
	b.fresh = append(b.fresh, o)
	return seckill.Placement{Order: o.Order, New: true}
}

// see notes a claim that will be written.
func (s *saleBatch) see(c seckill.AcceptedClaim) {
	s.seen.seq = max(s.seen.seq, c.Seq)
	if c.Epoch > s.seen.epoch {
		s.seen.epoch, s.seen.placed = c.Epoch, 0
	}
	if c.Epoch == s.seen.epoch {
		s.seen.placed++
	}
}

// take makes the claim an order: an unpaid one if it may have its units, a
// rejected one otherwise.
func (s *saleBatch) take(c seckill.AcceptedClaim, at time.Time) orderRow {
	reason := s.refusal(c)
	if reason != "" {
		o := newOrder(c, max(s.sale.Limit, 1), at)
		o.Status, o.Reason = seckill.OrderRejected, reason
		return o
	}
	s.available -= c.Quantity
	s.held[c.Buyer] += c.Quantity
	s.added[c.Buyer] += c.Quantity
	s.taken += c.Quantity
	return newOrder(c, s.sale.Limit, at)
}

// refusal says why the claim cannot have its units, or nothing.
func (s *saleBatch) refusal(c seckill.AcceptedClaim) seckill.Reason {
	switch {
	case !s.known:
		return seckill.ReasonSaleUnknown
	case s.held[c.Buyer]+c.Quantity > s.sale.Limit:
		return seckill.ReasonLimitReached
	case s.exact && c.Quantity > s.available:
		return seckill.ReasonSoldOut
	}
	return ""
}
