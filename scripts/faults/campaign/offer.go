package campaign

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/scripts/faults/stage"
	"seckill/shared/seckill"
)

// offer is a sale of the campaign and what happened to it.
type offer struct {
	sale seckill.Sale // with the epoch in which it was opened
	// lossy: Redis lost data of it, so it may be built again.
	lossy bool
	// aged: Redis came back with older data, so it may have accepted claims
	// that MySQL had to reject, until that was noticed.
	aged bool
	// distrusted are the times from such a return until it was noticed.
	distrusted []span
}

type span struct{ from, to time.Time }

func (s span) overlaps(from, to time.Time) bool { return s.from.Before(to) && from.Before(s.to) }

// open makes the round's sales: one with a limit of one unit, one of three.
func (c *campaign) open(ctx context.Context) error {
	c.offers = nil
	for _, limit := range []int64{1, 3} {
		o, err := newOffer(ctx, c.stage, seckill.Sale{
			ID: fmt.Sprintf("r%d-limit-%d", c.round, limit), Units: 12 * limit, Limit: limit, PayWindow: payWindow,
		})
		if err != nil {
			return err
		}
		c.offers = append(c.offers, o)
	}
	return nil
}

// newOffer puts a sale on sale, which has the id, units, limit and pay window
// that are given, and brings it into Redis.
func newOffer(ctx context.Context, s *stage.Stage, sale seckill.Sale) (*offer, error) {
	if _, err := s.Records.PutItem(ctx, seckill.Item{SKU: sale.ID, Name: "Tea"}); err != nil {
		return nil, err
	}
	sale.SKU, sale.PriceMinor, sale.Currency = sale.ID, 9900, "CNY"
	sale.OpensAt, sale.ClosesAt = time.Now().Add(-time.Minute), time.Now().Add(3*time.Hour)
	if _, err := s.Records.PutSale(ctx, sale); err != nil {
		return nil, err
	}
	// A sweep may bring it at the same time; who is second finds it fresh.
	release := s.HoldSweeps()
	_, err := s.Builder().Bring(ctx, sale.ID)
	release()
	if err != nil {
		return nil, err
	}
	sale, err = s.Records.Sale(ctx, sale.ID)
	return &offer{sale: sale}, err
}

// crowd sets the buyers going.
func (c *campaign) crowd(ctx context.Context, ending <-chan struct{}) (*sync.WaitGroup, error) {
	var crowd sync.WaitGroup
	for _, o := range c.offers {
		for n := range buyersASale {
			b, err := c.shop.buyer(o.sale, fmt.Sprintf("%s-b%d", o.sale.ID, n), c.rng.Uint64(), ending)
			if err != nil {
				return &crowd, err
			}
			crowd.Go(func() { b.run(ctx) })
		}
		reader, err := c.shop.buyer(o.sale, o.sale.ID+"-reader", 0, ending)
		if err != nil {
			return &crowd, err
		}
		crowd.Go(func() { reader.read(ctx) })
	}
	return &crowd, nil
}
