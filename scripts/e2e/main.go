// Command e2e runs one sale on a real cluster, from zero and back:
//
//	go run ./scripts/e2e -gateway http://ADDRESS
//
// It deploys an overlay of k8s into the cluster of the current kubectl context,
// waits until every function is at zero, lets many buyers claim at the instant
// of the opening, lets winners pay, cancel and let their orders expire, audits
// the laws, waits until everything is at zero again, prints what it measured
// and takes away what it deployed.
//
// The images must be there (-registry, -tag), and so must the Secrets that the
// overlay does not hold (see k8s/base). Kinds that the cluster does not know
// are left out, which is said: without SinkBindings the bridge is given the
// address of order-consumer, without PingSources it alone ticks the cron.
// Requests go to Knative's ingress by the functions' own hosts, or with -host
// to a Gateway's short paths.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	overlay  string
	registry string
	tag      string
	gateway  string
	host     string
	burst    int
	units    int
	keep     bool
	timeout  time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.overlay, "overlay", "k8s/overlays/local", "the folder to deploy")
	flag.StringVar(&o.registry, "registry", "ghcr.io/example", "where the images are")
	flag.StringVar(&o.tag, "tag", "latest", "the images' tag")
	flag.StringVar(&o.gateway, "gateway", "", "address of the ingress, as http://HOST; empty asks the Service kourier")
	flag.StringVar(&o.host, "host", "", "host name of the HTTPRoutes, if requests shall go by them")
	flag.IntVar(&o.burst, "burst", 500, "buyers who claim at once")
	flag.IntVar(&o.units, "units", 100, "units on sale")
	flag.BoolVar(&o.keep, "keep", false, "leave everything deployed")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Minute, "give up after")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
}

// run does it all; what was deployed is taken away whatever happens.
func run(ctx context.Context, o options) (err error) {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	if o.units < 3 || o.burst <= o.units {
		return errors.New("-units must be at least 3, -burst more than that")
	}
	d, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	if !o.keep {
		defer func() { err = errors.Join(err, d.remove(context.WithoutCancel(ctx))) }()
	}
	if err := d.deploy(ctx); err != nil {
		return err
	}
	s, err := newShop(ctx, d)
	if err != nil {
		return err
	}
	if err := s.sell(ctx); err != nil {
		return err
	}
	s.figures.print(os.Stdout)
	return nil
}
