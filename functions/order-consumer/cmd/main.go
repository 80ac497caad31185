// Command order-consumer is the container's main: configuration, connections,
// the function, serve.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	orderconsumer "seckill/functions/order-consumer"
	"seckill/shared/config"
	"seckill/shared/mysqlstore"
	"seckill/shared/redisstore"
	"seckill/shared/serve"
)

type settings struct {
	Serve    serve.Config
	Function orderconsumer.Config
	MySQL    mysqlstore.Config
	Redis    redisstore.Config
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "order-consumer:", err)
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
	if c.Function.Secret == "" {
		slog.Warn("EVENTS_SECRET is not set: whoever reaches this function may send it events")
	}
	return serve.Run(ctx, c.Serve, orderconsumer.New(c.Function, mysql, redis),
		serve.Check{Name: "mysql", Ping: mysql.Ping},
		serve.Check{Name: "redis", Ping: redis.Ping})
}
