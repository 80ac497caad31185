package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/lua"
	"seckill/shared/config"
	"seckill/shared/identity"
	"seckill/shared/natsqueue"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/serve"
	"seckill/shared/strictjson"
)

// variant takes claims as seckill-http does, only that each request has a
// script call of its own: how it would be done without batches.
type variant struct {
	queue  *natsqueue.Queue
	buyers *identity.Verifier
	// claim decides one request; nil without an error means refused.
	claim func(ctx context.Context, sale string, r seckill.ClaimRequest) (*seckill.AcceptedClaim, error)
}

// serveVariant is the program of a variant: "single" calls the script by
// itself, "pipelined" lets go-redis join calls that are made at the same time.
func serveVariant(ctx context.Context, args []string) error {
	var c struct {
		Serve    serve.Config
		Identity identity.Config
		Redis    redisstore.Config
		NATS     natsqueue.Config
	}
	if err := config.Load(&c); err != nil {
		return err
	}
	queue, err := natsqueue.Open(c.NATS)
	if err != nil {
		return err
	}
	buyers, err := identity.New(ctx, c.Identity)
	if err != nil {
		return err
	}
	v := &variant{queue: queue, buyers: buyers}
	if args[0] == "pipelined" {
		client := redis.NewClient(&redis.Options{Addr: c.Redis.Addrs[0], PoolSize: c.Redis.ConnsMax, ContextTimeoutEnabled: true})
		pipe, err := client.AutoPipeline()
		if err != nil {
			return err
		}
		v.claim = pipelined{pipe, redis.NewScript(string(lua.Claim))}.claim
	} else {
		store, err := redisstore.Open(c.Redis)
		if err != nil {
			return err
		}
		v.claim = single{store}.claim
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sales/{sale}/claims", v.post)
	return serve.Run(ctx, c.Serve, mux, serve.Check{Name: "nats", Ping: queue.Ping})
}

func (v *variant) post(w http.ResponseWriter, r *http.Request) {
	buyer, err := v.buyers.Buyer(r)
	if err != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var body struct {
		Quantity *int64 `json:"quantity"`
	}
	if err := strictjson.Decode(w, r, 1024, &body); err != nil || body.Quantity == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id, err := uuid.NewV7()
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	sale := r.PathValue("sale")
	accepted, err := v.claim(r.Context(), sale, seckill.ClaimRequest{ID: id.String(), Buyer: buyer, Quantity: *body.Quantity})
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if accepted == nil {
		w.WriteHeader(http.StatusConflict)
		return
	}
	v.publish(r.Context(), *accepted)
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("Location", "/sales/"+sale+"/claims/"+accepted.Claim)
	w.WriteHeader(http.StatusAccepted)
	_, _ = fmt.Fprintf(w, `{"claim":"%s","sale":"%s","buyer":"%s","quantity":%d,"status":"reserved"}`+"\n", accepted.Claim, sale, buyer, accepted.Quantity)
}

// publish waits as long for the broker as seckill-http does.
func (v *variant) publish(ctx context.Context, claim seckill.AcceptedClaim) {
	acks := v.queue.PublishBatch(ctx, []seckill.AcceptedClaim{claim})
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-acks[0].Done():
	case <-timer.C:
	}
}

type single struct{ store *redisstore.Store }

func (s single) claim(ctx context.Context, sale string, r seckill.ClaimRequest) (*seckill.AcceptedClaim, error) {
	decisions, err := s.store.Claim(ctx, sale, []seckill.ClaimRequest{r})
	if err != nil {
		return nil, err
	}
	return decisions[0].Accepted, nil
}

type pipelined struct {
	pipe   *redis.AutoPipeliner
	script *redis.Script
}

// claim makes the store's call over the joining client. The names of the keys
// are redisstore's; if those change, this finds no sale and fails.
func (p pipelined) claim(ctx context.Context, sale string, r seckill.ClaimRequest) (*seckill.AcceptedClaim, error) {
	tag := "seckill:{" + sale + "}:"
	keys := []string{tag + "sale", tag + "stock", tag + "buyers", tag + "claims", tag + "log", tag + "rate:" + r.Buyer}
	reply, err := p.script.Run(ctx, p.pipe, keys, 1000, r.ID, r.Buyer, r.Quantity, "").StringSlice()
	if err != nil {
		return nil, err
	}
	if len(reply) != 2 {
		return nil, errors.New(strings.Join(reply, ", "))
	}
	head := strings.Split(reply[0], " ")
	seq, reserved := strings.CutPrefix(reply[1], "reserved ")
	if !reserved || len(head) < 9 {
		return nil, nil //nolint:nilnil // refused
	}
	n := func(text string) int64 {
		v, _ := strconv.ParseInt(text, 10, 64)
		return v
	}
	return &seckill.AcceptedClaim{
		Claim: r.ID, Sale: sale, SKU: head[6], Buyer: r.Buyer, Quantity: r.Quantity, PriceMinor: n(head[4]), Currency: head[5],
		PayWindowMS: n(head[7]), Limit: n(head[8]), Epoch: n(head[1]), Seq: n(seq), AcceptedAt: time.UnixMilli(n(head[3])),
	}, nil
}
