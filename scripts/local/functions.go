package main

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	expirycron "seckill/functions/expiry-cron"
	itemdetail "seckill/functions/item-detail"
	natsbridge "seckill/functions/nats-bridge"
	orderconsumer "seckill/functions/order-consumer"
	orderhttp "seckill/functions/order-http"
	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/config"
	"seckill/shared/identity"
	"seckill/shared/payment"
	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/serve"
	"seckill/shared/ticket"
)

// settings are those of all functions, read as each of them reads its own.
type settings struct {
	Serve    serve.Config
	Identity identity.Config
	Seckill  seckillhttp.Config
	Consumer orderconsumer.Config
	Cron     expirycron.Config
	Item     itemdetail.Config
	Order    orderhttp.Config
	Bridge   natsbridge.Config
	Ticket   ticket.Config
}

// gateway sends a request to the function it is for.
type gateway struct {
	functions map[string]http.Handler
	short     map[string]string // first path segment of the public paths, its function
	own       *http.ServeMux
}

// ServeHTTP takes /function/NAME/… as OpenFaaS' gateway does, and the short
// paths of the public functions.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if first == "function" {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/function/"), "/")
		if f := g.functions[name]; f != nil {
			http.StripPrefix("/function/"+name, atRoot(f)).ServeHTTP(w, r)
			return
		}
	}
	if f := g.functions[g.short[first]]; f != nil {
		f.ServeHTTP(w, r)
		return
	}
	g.own.ServeHTTP(w, r)
}

// atRoot gives a function the path / when nothing follows its name.
func atRoot(f http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "" {
			r.URL.Path = "/"
		}
		f.ServeHTTP(w, r)
	})
}

// mount builds every function on the shared stores.
func mount(ctx context.Context, p *parts, base string) (*gateway, error) {
	if err := config.Load(&p.settings); err != nil {
		return nil, err
	}
	s := p.settings
	serve.SetLog(s.Serve.LogLevel)
	buyers, err := identity.New(ctx, s.Identity)
	if err != nil {
		return nil, err
	}
	item, err := itemdetail.New(s.Item, p.mysql, p.redis, time.Now)
	if err != nil {
		return nil, err
	}
	if err := p.queue.OnChanged(ctx, item.Changed); err != nil {
		return nil, err
	}
	order, provider, err := orders(p, buyers, base)
	if err != nil {
		return nil, err
	}
	mysql, redis, nats := serve.Check{Name: "mysql", Ping: p.mysql.Ping}, serve.Check{Name: "redis", Ping: p.redis.Ping}, serve.Check{Name: "nats", Ping: p.queue.Ping}
	g := &gateway{
		functions: map[string]http.Handler{
			"seckill-http":   serve.Handler(s.Serve, seckillhttp.New(s.Seckill, p.redis, p.queue, buyers).TicketsBy(ticket.NewDesk(s.Ticket)), redis, nats),
			"order-consumer": serve.Handler(s.Serve, orderconsumer.New(s.Consumer, p.mysql, p.redis), mysql, redis),
			"expiry-cron":    serve.Handler(s.Serve, expirycron.New(s.Cron, p.mysql, p.redis, p.queue, time.Now).RefundBy(provider), mysql, redis, nats),
			"item-detail":    serve.Handler(s.Serve, item, redis, mysql),
			"order-http":     serve.Handler(s.Serve, order, mysql, redis),
			"nats-bridge":    serve.Handler(s.Serve, http.NotFoundHandler(), nats),
		},
		short: map[string]string{"sales": "seckill-http", "items": "item-detail", "orders": "order-http", "payments": "order-http"},
		own:   http.NewServeMux(),
	}
	g.own.Handle("/pay/", provider)
	g.own.HandleFunc("GET /dev/token", token(s.Identity.HMACSecret))
	g.own.HandleFunc("GET "+signInPath, signIn(s.Identity.HMACSecret))
	g.own.HandleFunc("POST "+signInPath, signIn(s.Identity.HMACSecret))
	g.own.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { problem.Write(w, problem.Of(seckill.ErrNotFound)) })
	return g, nil
}

// orders builds order-http and the simulated provider that pays its orders.
func orders(p *parts, buyers *identity.Verifier, base string) (*orderhttp.Handler, *payment.Simulated, error) {
	webhooks, err := payment.NewWebhooks(p.settings.Order.WebhookSecret)
	if err != nil {
		return nil, nil, err
	}
	provider, err := payment.NewSimulated(webhooks, p.settings.Order.PayURL, base+"/payments/callback")
	if err != nil {
		return nil, nil, err
	}
	return orderhttp.New(p.mysql, p.redis, buyers, provider, time.Now), provider, nil
}

// background runs the bridge and the cron over HTTP until ctx ends.
func (p *parts) background(ctx context.Context, base string) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Go(func() { natsbridge.New(p.settings.Bridge, p.queue.Claims()).Run(ctx) })
	wg.Go(func() { cron(ctx, base+"/function/expiry-cron") })
	return &wg
}
