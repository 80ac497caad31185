package mysqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"seckill/shared/seckill"
)

// note is a row of outbox as it is stored: the ids of orders of one sale.
type note struct {
	id       int64
	sale     string
	returns  []string
	announce map[seckill.OrderStatus][]string
	at       time.Time
}

// newNote says that orders of one sale, at most chunkMax, have just entered
// their states: it is to be announced, and orders that have just ceased to be
// live return their units.
func newNote(orders []orderRow, at time.Time) note {
	n := note{sale: orders[0].Sale, returns: []string{}, announce: map[seckill.OrderStatus][]string{}, at: at}
	for _, o := range orders {
		n.announce[o.Status] = append(n.announce[o.Status], o.ID)
		switch o.Status {
		case seckill.OrderCancelled, seckill.OrderExpired, seckill.OrderRefunding:
			n.returns = append(n.returns, o.ID)
		case seckill.OrderUnpaid, seckill.OrderPaid, seckill.OrderRefunded, seckill.OrderRejected:
		}
	}
	return n
}

// addOutbox writes the note of orders of one sale and returns it spelled out.
func addOutbox(ctx context.Context, tx *sql.Tx, orders []orderRow, at time.Time) (seckill.OutboxRow, error) {
	n := newNote(orders, at)
	if err := n.insert(ctx, tx); err != nil {
		return seckill.OutboxRow{}, err
	}
	byID := make(map[string]orderRow, len(orders))
	for _, o := range orders {
		byID[o.ID] = o
	}
	return n.spell(byID), nil
}

// insert stores the note and sets its id.
func (n *note) insert(ctx context.Context, tx *sql.Tx) error {
	returns, err := json.Marshal(n.returns)
	if err != nil {
		return fmt.Errorf("encode returns: %w", err)
	}
	announce, err := json.Marshal(n.announce)
	if err != nil {
		return fmt.Errorf("encode announcements: %w", err)
	}
	result, err := tx.ExecContext(ctx, `INSERT INTO outbox (sale, returns, announce, created_at) VALUES (?, ?, ?, ?)`,
		n.sale, string(returns), string(announce), n.at)
	if err != nil {
		return fmt.Errorf("write outbox: %w", err)
	}
	if n.id, err = result.LastInsertId(); err != nil {
		return fmt.Errorf("read the outbox row's id: %w", err)
	}
	return nil
}

// spell writes the note out with its orders. What it takes of them never
// changes once they are written.
func (n note) spell(orders map[string]orderRow) seckill.OutboxRow {
	row := seckill.OutboxRow{ID: n.id, Sale: n.sale, CreatedAt: n.at}
	for _, id := range n.returns {
		if o, ok := orders[id]; ok {
			row.Returns = append(row.Returns, o.Return())
		}
	}
	for _, status := range seckill.OrderStatuses() {
		for _, id := range n.announce[status] {
			o, ok := orders[id]
			o.Status = status // it may have gone on since
			if a, tells := o.Announce(n.at); ok && tells {
				row.Announce = append(row.Announce, a)
			}
		}
	}
	return row
}

// ids lists the note's orders; some may be listed twice.
func (n note) ids() []string {
	ids := slices.Clone(n.returns)
	for _, more := range n.announce {
		ids = append(ids, more...)
	}
	return ids
}

// spellAll writes notes out in their order, up to outboxOrdersMax orders.
func spellAll(ctx context.Context, q querier, notes []note) ([]seckill.OutboxRow, error) {
	var ids []string
	for i, n := range notes {
		if ids = append(ids, n.ids()...); len(ids) > outboxOrdersMax {
			notes = notes[:i+1]
			break
		}
	}
	slices.Sort(ids)
	orders := map[string]orderRow{}
	for chunk := range slices.Chunk(slices.Compact(ids), chunkMax) {
		part, err := ordersByID(ctx, q, chunk)
		if err != nil {
			return nil, fmt.Errorf("read orders: %w", err)
		}
		maps.Copy(orders, part)
	}
	rows := make([]seckill.OutboxRow, len(notes))
	for i, n := range notes {
		rows[i] = n.spell(orders)
	}
	return rows, nil
}

// outboxOrdersMax bounds the orders that one Outbox call spells out.
const outboxOrdersMax = 10_000

// Outbox lists the rows after the id after that are at least minAge old by
// MySQL's clock, in the order of their ids, at most sizeMax and fewer if they
// are of very many orders; none means that there are no more. A sweep starts
// from 0 each time: a row with a lower id may be committed later than one with
// a higher.
func (s *Store) Outbox(ctx context.Context, after int64, sizeMax int, minAge time.Duration) ([]seckill.OutboxRow, error) {
	var list []seckill.OutboxRow
	err := s.retry(ctx, func(ctx context.Context) error {
		at, err := now(ctx, s.db)
		if err != nil {
			return err
		}
		rows, err := s.db.QueryContext(ctx, `
			SELECT id, sale, returns, announce, created_at FROM outbox
			WHERE id > ? AND created_at <= ? ORDER BY id LIMIT ?`, after, at.Add(-minAge), max(sizeMax, 0))
		notes, err := all(rows, err, scanNote)
		if err != nil {
			return err
		}
		list, err = spellAll(ctx, s.db, notes)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("outbox after %d: %w", after, err)
	}
	return list, nil
}

// ReturnsPending reports whether units of a sale wait in the outbox to be
// given back in Redis.
func (s *Store) ReturnsPending(ctx context.Context, sale string) (bool, error) {
	var pending bool
	err := s.retry(ctx, func(ctx context.Context) error {
		return get(s.db.QueryRowContext(ctx, `
			SELECT EXISTS (SELECT 1 FROM outbox WHERE sale = ? AND returns <> '[]')`, sale), &pending)
	})
	if err != nil {
		return false, fmt.Errorf("pending returns of %s: %w", sale, err)
	}
	return pending, nil
}

func scanNote(row scanner) (note, error) {
	var n note
	var returns, announce []byte
	if err := row.Scan(&n.id, &n.sale, &returns, &announce, &n.at); err != nil {
		return n, err
	}
	if err := json.Unmarshal(returns, &n.returns); err != nil {
		return n, fmt.Errorf("returns of row %d: %w", n.id, err)
	}
	if err := json.Unmarshal(announce, &n.announce); err != nil {
		return n, fmt.Errorf("announcements of row %d: %w", n.id, err)
	}
	return n, nil
}

// OutboxDone forgets rows whose work is done. Ids that are gone already are
// no error.
func (s *Store) OutboxDone(ctx context.Context, ids []int64) error {
	for chunk := range slices.Chunk(ids, chunkMax) {
		err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
			_, err := exec(ctx, tx, `DELETE FROM outbox WHERE id IN (`+marks(len(chunk))+`)`, anys(chunk)...)
			return err
		})
		if err != nil {
			return fmt.Errorf("finish %d outbox rows from %d: %w", len(chunk), chunk[0], err)
		}
	}
	return nil
}

// OutboxReturned notes that a row's returns are done; its announcements
// remain to be published. A row that is gone is no error.
func (s *Store) OutboxReturned(ctx context.Context, id int64) error {
	err := s.inTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := exec(ctx, tx, `UPDATE outbox SET returns = '[]' WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("finish returns of outbox row %d: %w", id, err)
	}
	return nil
}
