package audit_test

import (
	"context"
	"testing"

	"seckill/shared/audit"
	"seckill/shared/seckill"
)

// restless is a sale whose stock changes whenever somebody looks.
type restless struct {
	audit.Records
	stocks, sums int
	money        []seckill.Money
}

func (r *restless) Stock(context.Context, string) (seckill.Stock, error) {
	r.stocks++
	return seckill.Stock{Opened: 5, Available: 5, Version: int64(r.stocks)}, nil
}

func (*restless) UnitsByStatus(context.Context, string) (map[seckill.OrderStatus]int64, error) {
	return map[seckill.OrderStatus]int64{}, nil
}
func (*restless) OverLimit(context.Context, string) (int64, error)     { return 0, nil }
func (*restless) ReturnsPending(context.Context, string) (bool, error) { return false, nil }

func (r *restless) MoneyOf(context.Context, string) ([]seckill.Money, error) {
	r.sums++
	return r.money, nil
}

// Head implements audit.Reservations.
func (*restless) Head(context.Context, string) (seckill.SaleHead, error) {
	return seckill.SaleHead{Loaded: true, StockOK: true, Opened: 5, Stock: 5}, nil
}

// A sale that never stands still is looked at many times, but its payments,
// which are all read to sum them up, only once.
func TestMoneyOfARestlessSaleIsReadOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		money seckill.Money
		holds bool
	}{
		"adds up":     {seckill.Money{Currency: "CNY", Received: 300, Refunded: 100, Due: 100, Kept: 100}, true},
		"one missing": {seckill.Money{Currency: "CNY", Received: 300, Refunded: 100, Due: 100}, false},
	} {
		s := &restless{money: []seckill.Money{test.money}}
		r, err := audit.Sale(t.Context(), s, s, "s1")
		if err != nil || r.AtRest || r.Laws.Money != test.holds || len(r.Money) != 1 || r.Money[0] != test.money {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
		if s.stocks < 4 || s.sums != 1 {
			t.Errorf("%s: the stock was read %d times, the money %d times", name, s.stocks, s.sums)
		}
	}
}
