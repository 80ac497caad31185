package main

import (
	"context"
	"fmt"
	"time"

	"seckill/shared/audit"
	"seckill/shared/seckill"
)

// law is one that was looked at.
type law struct {
	name   string
	broken bool
	detail string
}

// judge waits until the system is at rest and looks whether the laws hold.
func (l *load) judge(ctx context.Context, r *result) error {
	if l.scenario.name == "items" {
		return nil // nobody claims
	}
	began := time.Now()
	defer func() { r.rest = time.Since(began) }()
	if l.stores == nil {
		asked, left := l.unsettled(ctx, l.options.rest)
		r.laws = append(r.laws, law{
			"nothing lost", left > 0,
			fmt.Sprintf("%s of %s winners asked have no result", thousands(left), thousands(asked)),
		})
		return ctx.Err()
	}
	report, err := l.stores.atRest(ctx, l.sale, l.options.rest)
	if err != nil {
		return err
	}
	r.units = l.stores.units(ctx, l.sale)
	r.placed, err = l.stores.orders(ctx, l.sale, r.at, l.winners.known)
	r.laws = append(r.laws, audited(report)...)
	r.laws = append(r.laws, law{"limit", !report.Laws.Limit, "no buyer holds more than the sale's limit, counted in MySQL"})
	r.laws = append(r.laws, law{
		"nothing lost", r.placed.lost > 0,
		fmt.Sprintf("%s claims were accepted before their buyers' eyes, %s of them have no order", thousands(int64(len(l.winners.known))), thousands(r.placed.lost)),
	})
	soldOut := l.recorder.Total(kindSoldOut).TotalCount()
	if l.scenario.sellsOut && soldOut > 0 && l.options.sale == "" {
		r.laws = append(r.laws, law{
			"every unit sellable", r.units.stock != 0,
			fmt.Sprintf("%s buyers were told \"sold out\", %s units are left", thousands(soldOut), thousands(r.units.stock)),
		})
	}
	return err
}

func audited(r audit.Report) []law {
	live := r.Orders[seckill.OrderUnpaid] + r.Orders[seckill.OrderPaid]
	stock := "unknown"
	if r.Stock != nil {
		stock = thousands(*r.Stock)
	}
	rest := "yes"
	if !r.AtRest {
		rest = fmt.Sprintf("no, %s units are still reserved", thousands(r.Reserved))
	}
	return []law{
		{"at rest", !r.AtRest, rest},
		{"no oversell", !r.Laws.NoOversell, fmt.Sprintf("%s live units of %s", thousands(live), thousands(r.Opened))},
		{"conservation", !r.Laws.Conservation, fmt.Sprintf("opened %s = available %s + live %s; stock in Redis %s",
			thousands(r.Opened), thousands(r.Available), thousands(live), stock)},
	}
}
