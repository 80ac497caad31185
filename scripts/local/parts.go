package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"

	"seckill/shared/config"
	"seckill/shared/embedded"
	"seckill/shared/embedded/mysqld"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/redisstore"
)

// setDefaults sets what a deployment would: secrets that hold as long as this
// process, and where the functions find each other.
func setDefaults(base string) error {
	for name, value := range map[string]string{
		"PAYMENT_URL": base + "/pay",
		"TARGET_URL":  base + "/function/order-consumer",
		"SIGN_IN_URL": signInPath,
		"LOG_LEVEL":   "warn",
	} {
		if err := setIfEmpty(name, value); err != nil {
			return err
		}
	}
	for _, name := range []string{"AUTH_HMAC_SECRET", "PAYMENT_WEBHOOK_SECRET", "TICKET_SECRET"} {
		secret := make([]byte, 32)
		if _, err := rand.Read(secret); err != nil {
			return err
		}
		if err := setIfEmpty(name, hex.EncodeToString(secret)); err != nil {
			return err
		}
	}
	return nil
}

func setIfEmpty(name, value string) error {
	if os.Getenv(name) != "" {
		return nil
	}
	return os.Setenv(name, value)
}

// parts are the stores that all functions of this process share, and what of
// them is embedded.
type parts struct {
	settings settings
	mysql    *mysqlstore.Store
	redis    *redisstore.Store
	queue    *natsqueue.Queue
	embedded []string
	stops    []func()
}

// stop ends everything in the reverse order of its start.
func (p *parts) stop() {
	for i := len(p.stops) - 1; i >= 0; i-- {
		p.stops[i]()
	}
}

// startParts connects to the servers that the environment names, and starts
// an embedded one in the place of each that it does not name. What it returns
// is to be stopped also after an error.
func startParts() (*parts, error) {
	p := &parts{}
	for _, start := range []func() error{p.embedRedis, p.embedMySQL, p.embedNATS, p.connect} {
		if err := start(); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p *parts) embedRedis() error {
	if os.Getenv("REDIS_ADDRS") != "" {
		return nil
	}
	addr, stop, err := embedded.Redis()
	if err != nil {
		return fmt.Errorf("embed redis: %w", err)
	}
	p.embedded, p.stops = append(p.embedded, "Redis"), append(p.stops, stop)
	return os.Setenv("REDIS_ADDRS", addr)
}

func (p *parts) embedMySQL() error {
	if os.Getenv("MYSQL_DSN") != "" {
		return nil
	}
	dsn, stop, err := mysqld.Start()
	if err != nil {
		return fmt.Errorf("embed mysql: %w", err)
	}
	p.embedded, p.stops = append(p.embedded, "MySQL"), append(p.stops, stop)
	// With more connections this engine loses updates, so it lets one in;
	// between two uses that one can be seckillctl's.
	for name, value := range map[string]string{
		"MYSQL_CONNS_MAX": strconv.Itoa(mysqld.ConnsMax), "MYSQL_CONNS_RELEASE": "true", "MYSQL_DSN": dsn,
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *parts) embedNATS() error {
	if os.Getenv("NATS_URL") != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "seckill-nats-")
	if err != nil {
		return err
	}
	p.stops = append(p.stops, func() { _ = os.RemoveAll(dir) })
	url, stop, err := embedded.NATS(dir)
	if err != nil {
		return fmt.Errorf("embed nats: %w", err)
	}
	p.embedded, p.stops = append(p.embedded, "NATS"), append(p.stops, stop)
	return os.Setenv("NATS_URL", url)
}

func (p *parts) connect() error {
	var c struct {
		MySQL mysqlstore.Config
		Redis redisstore.Config
		NATS  natsqueue.Config
	}
	err := config.Load(&c)
	if err == nil {
		p.mysql, err = mysqlstore.Open(c.MySQL)
	}
	if err == nil {
		p.stops = append(p.stops, func() { _ = p.mysql.Close() })
		p.redis, err = redisstore.Open(c.Redis)
	}
	if err == nil {
		p.stops = append(p.stops, func() { _ = p.redis.Close() })
		p.queue, err = natsqueue.Open(c.NATS)
	}
	if err == nil {
		p.stops = append(p.stops, func() { _ = p.queue.Close() })
	}
	return err
}
