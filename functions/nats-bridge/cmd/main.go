// Command nats-bridge is the container's main: configuration, connections, the
// function, serve.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	natsbridge "seckill/functions/nats-bridge"
	"seckill/shared/config"
	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
	"seckill/shared/serve"
)

type settings struct {
	Serve    serve.Config
	Function natsbridge.Config
	NATS     natsqueue.Config
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nats-bridge:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var c settings
	if err := config.Load(&c); err != nil {
		return err
	}
	serve.SetLog(c.Serve.LogLevel)
	queue, err := natsqueue.Open(c.NATS)
	if err != nil {
		return err
	}
	defer queue.Close() //nolint:errcheck // the process ends
	// When the server ends, so does the bridge, and the other way round.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ticker := natsbridge.NewTicker(c.Function)
	go ticker.Run(ctx)
	if err := queue.OnChanged(ctx, func(seckill.EventType, string, int64) { ticker.Wake() }); err != nil {
		return err
	}
	told, err := natsbridge.Notify(ctx, c.Function, queue.Orders())
	if err != nil {
		return err
	}
	bridge, moved := natsbridge.New(c.Function, ticker.Watch(queue.Claims())), make(chan struct{})
	go func() {
		defer close(moved)
		defer stop()
		bridge.Run(ctx)
	}()
	err = serve.Run(ctx, c.Serve, http.NotFoundHandler(), serve.Check{Name: "nats", Ping: queue.Ping})
	stop()
	<-moved
	<-told
	return err
}
