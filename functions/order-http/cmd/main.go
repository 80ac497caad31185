// Command order-http is the container's main: configuration, connections,
// the function, serve.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	orderhttp "seckill/functions/order-http"
	"seckill/shared/config"
	"seckill/shared/identity"
	"seckill/shared/mysqlstore"
	"seckill/shared/payment"
	"seckill/shared/redisstore"
	"seckill/shared/serve"
)

type settings struct {
	Serve    serve.Config
	Function orderhttp.Config
	Identity identity.Config
	MySQL    mysqlstore.Config
	Redis    redisstore.Config
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "order-http:", err)
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
	buyers, err := identity.New(ctx, c.Identity)
	if err != nil {
		return err
	}
	webhooks, err := payment.NewWebhooks(c.Function.WebhookSecret)
	if err != nil {
		return fmt.Errorf("PAYMENT_WEBHOOK_SECRET: %w", err)
	}
	callback := "http://127.0.0.1:" + strconv.Itoa(c.Serve.Port) + "/payments/callback"
	provider, err := payment.NewSimulated(webhooks, c.Function.PayURL, callback)
	if err != nil {
		return fmt.Errorf("PAYMENT_URL: %w", err)
	}
	function := orderhttp.New(mysql, redis, buyers, provider, time.Now)
	if c.Function.Simulated {
		slog.Warn("PAYMENT_SIMULATED is set: payments are a simulation, whoever opens a pay page has an order paid without money")
		function.PaysAt(provider)
	}
	return serve.Run(ctx, c.Serve, function,
		serve.Check{Name: "mysql", Ping: mysql.Ping},
		serve.Check{Name: "redis", Ping: redis.Ping})
}
