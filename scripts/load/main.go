// Command load sends buyers to a running system and states what they met: how
// long winners and refused ones waited, how many orders landed and when, and
// whether the laws held. It exits with 1 if one did not.
//
//	go run ./scripts/load -scenario rush -buyers 100000 -units 1000
//
// REDIS_ADDRS and MYSQL_DSN, those of the system, let it make a sale of its own
// and look into the stores; without them it takes an existing sale (-sale) and
// knows what buyers know. AUTH_HMAC_SECRET signs the buyers' tokens; without
// it they are fetched from /dev/token.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"seckill/shared/config"
)

// settings are what the environment says.
type settings struct {
	Secret     string   `envconfig:"AUTH_HMAC_SECRET" secret:"true"`
	RedisAddrs []string `envconfig:"REDIS_ADDRS"`
	MySQLDSN   string   `envconfig:"MYSQL_DSN" secret:"true"`
	NATSURL    string   `envconfig:"NATS_URL"`
}

// errBroken means that a law does not hold.
var errBroken = errors.New("a law does not hold")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var env settings
	if err := config.Load(&env); err != nil {
		return err
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	l, err := newLoad(ctx, o, env)
	if err != nil {
		return err
	}
	defer l.close()
	r, err := l.play(ctx)
	if err != nil {
		return err
	}
	fmt.Print(r.table())
	if o.report != "" {
		if err := writeReport(o.report, r); err != nil {
			return err
		}
		fmt.Println("report:", o.report)
	}
	if !r.hold() {
		return errBroken
	}
	return nil
}
