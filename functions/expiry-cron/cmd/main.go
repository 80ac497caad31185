// Command expiry-cron is the container's main: configuration, connections,
// the function, serve.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	expirycron "seckill/functions/expiry-cron"
	"seckill/shared/config"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/payment"
	"seckill/shared/redisstore"
	"seckill/shared/serve"
)

type settings struct {
	Serve    serve.Config
	Function expirycron.Config
	MySQL    mysqlstore.Config
	Redis    redisstore.Config
	NATS     natsqueue.Config
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "expiry-cron:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var c settings
	if err := config.Load(&c); err != nil {
		return err
	}
	serve.SetLog(c.Serve.LogLevel)
	mysql, err := mysqlstore.Open(c.MySQL)
	if err != nil {
		return err
	}
	defer mysql.Close() //nolint:errcheck // the process ends
	redis, err := redisstore.Open(c.Redis)
	if err != nil {
		return err
	}
	defer redis.Close() //nolint:errcheck // the process ends
	if err := redis.CheckEviction(ctx); err != nil {
		return err
	}
	queue, err := natsqueue.Open(c.NATS)
	if err != nil {
		return err
	}
	defer queue.Close() //nolint:errcheck // the process ends
	cron := expirycron.New(c.Function, mysql, redis, queue, time.Now).RefundBy(&payment.Simulated{})
	return serve.Run(ctx, c.Serve, cron,
		serve.Check{Name: "mysql", Ping: mysql.Ping},
		serve.Check{Name: "redis", Ping: redis.Ping},
		serve.Check{Name: "nats", Ping: queue.Ping})
}
