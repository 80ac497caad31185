// Package audit states whether the laws hold for a sale.
package audit

import (
	"context"
	"fmt"
	"slices"

	"seckill/shared/seckill"
)

// Records is the sale in MySQL; mysqlstore.Store is one.
type Records interface {
	Stock(ctx context.Context, sale string) (seckill.Stock, error)
	UnitsByStatus(ctx context.Context, sale string) (map[seckill.OrderStatus]int64, error)
	OverLimit(ctx context.Context, sale string) (int64, error)
	ReturnsPending(ctx context.Context, sale string) (bool, error)
	// MoneyOf sums up the sale's money as of one instant.
	MoneyOf(ctx context.Context, sale string) ([]seckill.Money, error)
}

// Reservations is the sale in Redis; redisstore.Store is one.
type Reservations interface {
	Head(ctx context.Context, sale string) (seckill.SaleHead, error)
}

// Report is the audit's document. Orders counts units by the state of their
// orders; Stock is nil while Redis cannot tell it.
type Report struct {
	Sale      string                        `json:"sale"`
	Opened    int64                         `json:"opened"`
	Stock     *int64                        `json:"stock"`
	Available int64                         `json:"available"`
	Reserved  int64                         `json:"reserved"`
	Orders    map[seckill.OrderStatus]int64 `json:"orders"`
	// AtRest: no claim is unsettled and no return is pending, so Redis and
	// MySQL must agree to the unit.
	AtRest bool `json:"at_rest"`
	// Money has a line for each currency that the sale's buyers paid in.
	Money []seckill.Money `json:"money"`
	Laws  Laws            `json:"laws"`
}

// Laws says of each law whether it holds.
type Laws struct {
	// NoOversell: live units never exceed what was opened.
	NoOversell bool `json:"no_oversell"`
	// Conservation: opened = available + live in MySQL; opened = stock +
	// reserved + live in Redis; at rest the two agree.
	Conservation bool `json:"conservation"`
	// Limit: no buyer holds more live units than the limit.
	Limit bool `json:"limit"`
	// Money: what was received, less what was and is to be given back, is what
	// the paid orders cost.
	Money bool `json:"money"`
}

// Hold reports whether all laws hold.
func (l Laws) Hold() bool { return l.NoOversell && l.Conservation && l.Limit && l.Money }

// looks is how often a sale that changes while it is looked at is looked at
// again.
const looks = 20

// Sale audits one sale. It reads MySQL before and after Redis: numbers of a
// sale that changed in between say nothing, so it looks again, and if the sale
// never stands still it judges MySQL alone. Its money adds up at any instant,
// so that is read once.
func Sale(ctx context.Context, records Records, reservations Reservations, sale string) (Report, error) {
	var r Report
	for range looks {
		steady, report, err := look(ctx, records, reservations, sale)
		if err != nil {
			return r, fmt.Errorf("audit sale %s: %w", sale, err)
		}
		r = report
		if steady {
			break
		}
	}
	money, err := records.MoneyOf(ctx, sale)
	if err != nil {
		return r, fmt.Errorf("audit sale %s: %w", sale, err)
	}
	r.Money = money
	r.Laws.Money = !slices.ContainsFunc(money, func(m seckill.Money) bool { return !m.Balanced() })
	return r, nil
}

func look(ctx context.Context, records Records, reservations Reservations, sale string) (bool, Report, error) {
	r := Report{Sale: sale}
	before, err := records.Stock(ctx, sale)
	if err != nil {
		return false, r, err
	}
	pending, err := records.ReturnsPending(ctx, sale)
	if err != nil {
		return false, r, err
	}
	head, err := reservations.Head(ctx, sale)
	if err != nil {
		return false, r, err
	}
	if r.Orders, err = records.UnitsByStatus(ctx, sale); err != nil {
		return false, r, err
	}
	over, err := records.OverLimit(ctx, sale)
	if err != nil {
		return false, r, err
	}
	after, err := records.Stock(ctx, sale)
	if err != nil {
		return false, r, err
	}
	r.Opened, r.Available = after.Opened, after.Available
	steady := before == after
	r.judge(head, steady, pending, over)
	return steady, r, nil
}

// judge fills in Redis' side and the laws, but that of money.
func (r *Report) judge(head seckill.SaleHead, steady, pending bool, over int64) {
	live := r.Orders[seckill.OrderUnpaid] + r.Orders[seckill.OrderPaid]
	r.Laws.NoOversell = live <= r.Opened && r.Available >= 0
	r.Laws.Limit = over == 0
	r.Laws.Conservation = !steady || r.Opened == r.Available+live
	if !head.Loaded || head.Fence != seckill.FenceNone {
		return
	}
	stock := head.Stock
	r.Stock, r.Reserved = &stock, head.Reserved
	r.AtRest = steady && !pending && head.Reserved == 0
	if !head.StockOK {
		r.Laws.Conservation = false
	}
	if r.AtRest && (head.Stock-head.Debt != r.Available || head.Opened != r.Opened) {
		r.Laws.Conservation = false
	}
}
