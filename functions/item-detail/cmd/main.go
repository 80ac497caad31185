// Command item-detail is the container's main: configuration, connections,
// the function, serve.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	itemdetail "seckill/functions/item-detail"
	"seckill/shared/config"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/redisstore"
	"seckill/shared/serve"
)

type settings struct {
	Serve    serve.Config
	Function itemdetail.Config
	MySQL    mysqlstore.Config
	Redis    redisstore.Config
	NATS     natsqueue.Config
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "item-detail:", err)
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
	queue, err := natsqueue.Open(c.NATS)
	if err != nil {
		return err
	}
	defer queue.Close() //nolint:errcheck // the process ends
	items, err := itemdetail.New(c.Function, mysql, redis, time.Now)
	if err != nil {
		return err
	}
	if err := queue.OnChanged(ctx, items.Changed); err != nil {
		return err
	}
	// NATS is no condition: it only makes changes show sooner.
	return serve.Run(ctx, c.Serve, items,
		serve.Check{Name: "redis or mysql", Ping: itemdetail.AnyOf(redis.Ping, mysql.Ping)})
}
