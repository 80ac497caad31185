// Command local runs the whole system in one process: every function behind
// one port with the gateway's paths, the bridge, the cron, and, unless the
// environment names real ones, embedded Redis, MySQL and NATS.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	addr      string
	stock     int64
	limit     int64
	opensIn   time.Duration
	payWindow time.Duration
}

func main() {
	o := parse(os.Args[1:])
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "local:", err)
		os.Exit(1)
	}
}

// parse reads the command line with flags of its own: an embedded server has
// added others to the common ones.
func parse(args []string) options {
	var o options
	flags := flag.NewFlagSet("local", flag.ExitOnError)
	flags.StringVar(&o.addr, "addr", "127.0.0.1:8080", "where to listen")
	flags.Int64Var(&o.stock, "stock", 100, "units of the sale demo")
	flags.Int64Var(&o.limit, "limit", 1, "units that one buyer may hold")
	flags.DurationVar(&o.opensIn, "opens-in", 5*time.Second, "when the sale demo opens")
	flags.DurationVar(&o.payWindow, "pay-window", 15*time.Minute, "how long a buyer has to pay")
	_ = flags.Parse(args) // it exits on an error
	return o
}

// shutdownMax bounds how long the process takes to end.
const shutdownMax = 10 * time.Second

func run(ctx context.Context, o options) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", o.addr)
	if err != nil {
		return err
	}
	base := "http://" + listener.Addr().String()
	if err := setDefaults(base); err != nil {
		return err
	}
	p, err := startParts()
	defer p.stop()
	if err != nil {
		return err
	}
	mux, err := mount(ctx, p, base)
	if err != nil {
		return err
	}
	if err := p.prepare(ctx, o); err != nil {
		return err
	}
	server := &http.Server{Handler: withToken(mux), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	background := p.background(ctx, base)
	announce(base, p, o)
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownMax)
	defer cancel()
	shut := server.Shutdown(ctx)
	background.Wait()
	if err == nil {
		err = shut
	}
	return err
}

// announce prints what to open, what is embedded, and how seckillctl finds the
// same data.
func announce(base string, p *parts, o options) {
	fmt.Printf("flash sale on %s\n\n", base)
	fmt.Printf("  the sale      %s/items/demo (%d units, opens in %s): open it in a browser\n", base, o.stock, o.opensIn)
	fmt.Printf("  a token       curl '%s/dev/token?buyer=u1'\n", base)
	fmt.Printf("  a claim       curl -H \"Authorization: Bearer $(curl -s '%s/dev/token?buyer=u1')\" --json '{\"quantity\":1}' %s/sales/demo/claims\n\n", base, base)
	for _, name := range p.embedded {
		fmt.Printf("%s is embedded: its data vanishes when this process ends\n", name)
	}
	fmt.Printf("\nREDIS_ADDRS=%s\nMYSQL_DSN=%s\nNATS_URL=%s\n", os.Getenv("REDIS_ADDRS"), os.Getenv("MYSQL_DSN"), os.Getenv("NATS_URL"))
}
