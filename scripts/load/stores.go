package main

import (
	"context"
	"fmt"
	"time"

	"seckill/shared/audit"
	"seckill/shared/mysqlstore"
	"seckill/shared/rebuild"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
)

// stores are the system's own, to make a sale and to look at what became of
// it.
type stores struct {
	env   settings
	mysql *mysqlstore.Store
	redis *redisstore.Store
}

func openStores(env settings) (*stores, error) {
	mysql, err := mysqlstore.Open(mysqlstore.Config{DSN: env.MySQLDSN, ConnsMax: 2})
	if err != nil {
		return nil, err
	}
	redis, err := redisstore.Open(redisstore.Config{Addrs: env.RedisAddrs, ConnsMax: 2, Timeout: 5 * time.Second})
	if err != nil {
		_ = mysql.Close()
		return nil, err
	}
	return &stores{env: env, mysql: mysql, redis: redis}, nil
}

func (s *stores) close() {
	_ = s.mysql.Close()
	_ = s.redis.Close()
}

// saleLength is how long a sale of a run's own stays open.
const saleLength = 12 * time.Hour

// create makes an item and a sale of this name and brings it into Redis.
func (s *stores) create(ctx context.Context, o options, id string) (seckill.Sale, error) {
	if _, err := s.mysql.PutItem(ctx, seckill.Item{SKU: id, Name: "Load " + id, Description: "An item of the load generator."}); err != nil {
		return seckill.Sale{}, err
	}
	opens := time.Now().Add(o.opensIn)
	sale, err := s.mysql.PutSale(ctx, seckill.Sale{
		ID: id, SKU: id, PriceMinor: 9900, Currency: "CNY", Units: o.units, Limit: o.limit,
		OpensAt: opens, ClosesAt: opens.Add(saleLength), PayWindow: o.payWindow,
	})
	if err != nil {
		return sale, err
	}
	// A sale that was never built needs no stream of claims to be.
	builder := rebuild.Builder{Records: s.mysql, Reservations: s.redis}
	if _, err := builder.Bring(ctx, sale.ID); err != nil {
		return sale, err
	}
	for { // the system's own sweep may be the one who builds it
		head, err := s.redis.Head(ctx, id)
		if err == nil && head.Loaded && head.Fence == seckill.FenceNone {
			return sale, nil
		}
		select {
		case <-ctx.Done():
			return sale, fmt.Errorf("sale %s was not loaded: %w", id, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// units is what both stores say of a sale's units; a number that could not be
// read is -1.
type units struct {
	opened, stock, reserved, available int64
}

func (s *stores) units(ctx context.Context, sale string) units {
	u := units{-1, -1, -1, -1}
	if head, err := s.redis.Head(ctx, sale); err == nil && head.StockOK {
		u.opened, u.stock, u.reserved = head.Opened, head.Stock, head.Reserved
	}
	if stock, err := s.mysql.Stock(ctx, sale); err == nil {
		u.available = stock.Available
	}
	return u
}

// atRest audits the sale until it is at rest or the time is over.
func (s *stores) atRest(ctx context.Context, sale string, within time.Duration) (audit.Report, error) {
	deadline := time.Now().Add(within)
	for {
		report, err := audit.Sale(ctx, s.mysql, s.redis, sale)
		if (err == nil && report.AtRest) || time.Now().After(deadline) {
			return report, err
		}
		select {
		case <-ctx.Done():
			return report, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}
