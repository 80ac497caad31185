package campaign

import (
	"context"
	"fmt"
	"time"

	"seckill/scripts/faults/proxy"
	"seckill/scripts/faults/stage"
)

// way is one of the connections between functions and stores that are used.
func (f *fault) way() (string, *proxy.Proxy) {
	used := []struct{ function, store string }{
		{"seckill-http", "redis"},
		{"seckill-http", "nats"},
		{"order-consumer", "redis"},
		{"order-consumer", "mysql"},
		{"expiry-cron", "redis"},
		{"expiry-cron", "mysql"},
		{"expiry-cron", "nats"},
		{"item-detail", "redis"},
		{"item-detail", "mysql"},
		{"order-http", "redis"},
		{"order-http", "mysql"},
		{"nats-bridge", "nats"},
	}
	w := used[f.rng.IntN(len(used))]
	fn := f.stage.Functions[w.function]
	proxies := map[string]*proxy.Proxy{"redis": fn.Redis, "mysql": fn.MySQL, "nats": fn.NATS}
	return w.function + " to " + w.store, proxies[w.store]
}

// troubled sets a trouble on a way for a while.
func (f *fault) troubled(ctx context.Context, about time.Duration, t proxy.Trouble) (string, error) {
	name, way := f.way()
	way.Set(t)
	defer way.Heal()
	f.lasts(ctx, about)
	return name, nil
}

func waySlow(ctx context.Context, f *fault) (string, error) {
	return f.troubled(ctx, 2*time.Second, proxy.Trouble{Delay: 80 * time.Millisecond})
}

// wayCut ends each connection in the middle of an answer, at any byte.
func wayCut(ctx context.Context, f *fault) (string, error) {
	bytes := 1 + f.rng.Int64N(2000)
	what, err := f.troubled(ctx, 2*time.Second, proxy.Trouble{CutAfter: bytes})
	return fmt.Sprintf("%s after %d bytes", what, bytes), err
}

func wayMute(ctx context.Context, f *fault) (string, error) {
	return f.troubled(ctx, 1500*time.Millisecond, proxy.Trouble{DropReplies: true})
}

func wayStallsRequests(ctx context.Context, f *fault) (string, error) {
	return f.troubled(ctx, 1500*time.Millisecond, proxy.Trouble{StallRequests: true})
}

func wayStallsReplies(ctx context.Context, f *fault) (string, error) {
	return f.troubled(ctx, 1500*time.Millisecond, proxy.Trouble{StallReplies: true})
}

func wayRefuses(ctx context.Context, f *fault) (string, error) {
	name, way := f.way()
	way.Set(proxy.Trouble{Refuse: true})
	way.Reset()
	defer way.Heal()
	f.lasts(ctx, 1500*time.Millisecond)
	return name, nil
}

func wayReset(ctx context.Context, f *fault) (string, error) {
	name, way := f.way()
	for range 5 {
		way.Reset()
		f.lasts(ctx, 100*time.Millisecond)
	}
	return name, nil
}

func (f *fault) gateway(ctx context.Context, m stage.Mischief) (string, error) {
	f.stage.Gateway.Set(&m)
	defer f.stage.Gateway.Set(nil)
	f.lasts(ctx, 1500*time.Millisecond)
	return "", nil
}

func gatewayLosesAnswers(ctx context.Context, f *fault) (string, error) {
	return f.gateway(ctx, stage.Mischief{Lose: 3})
}

func gatewayCutsAnswers(ctx context.Context, f *fault) (string, error) {
	return f.gateway(ctx, stage.Mischief{CutAfter: 20})
}

func gatewayRefuses(ctx context.Context, f *fault) (string, error) {
	return f.gateway(ctx, stage.Mischief{Refuse: true})
}

func gatewaySlow(ctx context.Context, f *fault) (string, error) {
	return f.gateway(ctx, stage.Mischief{Delay: 150 * time.Millisecond})
}
