// Command seckill-http is the container's main: configuration, connections,
// the function, serve.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/config"
	"seckill/shared/identity"
	"seckill/shared/natsqueue"
	"seckill/shared/redisstore"
	"seckill/shared/serve"
	"seckill/shared/ticket"
)

type settings struct {
	Serve    serve.Config
	Function seckillhttp.Config
	Identity identity.Config
	Redis    redisstore.Config
	NATS     natsqueue.Config
	Ticket   ticket.Config
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "seckill-http:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var c settings
	if err := config.Load(&c); err != nil {
		return err
	}
	serve.SetLog(c.Serve.LogLevel)
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
	buyers, err := identity.New(ctx, c.Identity)
	if err != nil {
		return err
	}
	function := seckillhttp.New(c.Function, seckillhttp.Waking(redis, queue), queue, buyers).TicketsBy(ticket.NewDesk(c.Ticket))
	return serve.Run(ctx, c.Serve, function,
		serve.Check{Name: "redis", Ping: redis.Ping},
		serve.Check{Name: "nats", Ping: queue.Ping})
}
