package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/lua"
	"seckill/shared/seckill"
)

const (
	// BatchMax bounds the claims of one script call: a call of 512 takes a
	// few milliseconds, during which Redis does nothing else.
	BatchMax = 512
	// rateGap is the least time between two attempts of a buyer in a sale.
	rateGap = time.Second
	// triedTTL is how long an Idempotency-Key is remembered across sales: long
	// enough for the retries of a request that was refused or got no answer,
	// short enough that a crowd before the opening fills no memory.
	triedTTL = 2 * time.Minute
	// keyTTL is how long the key of an accepted claim is remembered across
	// sales; inside its sale the claim is known as long as the sale.
	keyTTL = 24 * time.Hour
)

var bindScript = redis.NewScript(string(lua.Bind))

// Claim decides a batch of at most BatchMax claims of one sale, in order. The
// decisions stand in the order of the requests. An error means unknown: some
// of the claims may have been accepted, and asking again with the same ids
// tells.
func (s *Store) Claim(ctx context.Context, sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error) {
	if len(requests) > BatchMax {
		return nil, fmt.Errorf("claim in sale %s: batch of %d is over %d: %w", sale, len(requests), BatchMax, seckill.ErrInvalid)
	}
	decisions := make([]seckill.Decision, len(requests))
	bound, err := s.bind(ctx, sale, requests, decisions)
	if err != nil || len(bound) == 0 {
		return decisions, err
	}
	keys := saleKeys(sale)
	args := make([]any, 1, 1+4*len(bound))
	args[0] = rateGap.Milliseconds()
	for _, i := range bound {
		r := requests[i]
		keys = append(keys, rateKey(sale, r.Buyer))
		args = append(args, r.ID, r.Buyer, r.Quantity, ticketArg(r.Ticket))
	}
	reply, err := s.scripts.claim.Run(ctx, s.client, keys, args...).StringSlice()
	if err != nil {
		return nil, unavailable("claim in sale "+sale, err)
	}
	if err := readDecisions(sale, reply, requests, bound, decisions); err != nil {
		return nil, err
	}
	s.afterwards(ctx, sale, requests, decisions)
	return decisions, nil
}

// afterwards keeps the keys of accepted claims for long, and fetches from the
// claim log what a repeated claim that is still reserved was accepted as: the
// first answer may have been lost before the claim was published. The claims
// are decided by now, so what fails here fails none of them: a key is then
// forgotten sooner, and the sweep publishes what was not.
func (s *Store) afterwards(ctx context.Context, sale string, requests []seckill.ClaimRequest, decisions []seckill.Decision) {
	pipe := s.client.Pipeline()
	entries := make(map[int]*redis.XMessageSliceCmd)
	for i, d := range decisions {
		if d.Accepted != nil && requests[i].Key != "" {
			pipe.PExpire(ctx, boundKey(requests[i].Buyer, requests[i].Key), keyTTL)
		}
		if d.Outcome == seckill.OutcomeReserved && d.Accepted == nil && d.LogEntry != "" {
			entries[i] = pipe.XRange(ctx, logKey(sale), d.LogEntry, d.LogEntry)
		}
	}
	if pipe.Len() == 0 {
		return
	}
	if _, err := pipe.Exec(ctx); err != nil {
		slog.WarnContext(ctx, "claims are decided but not looked up", "sale", sale, "error", err)
	}
	for i, entry := range entries {
		messages, err := entry.Result()
		if err != nil || len(messages) != 1 {
			continue
		}
		if accepted, err := readEntry(sale, messages[0]); err == nil {
			decisions[i].Accepted = &accepted
		}
	}
}

// bind ties the Idempotency-Keys of the batch to their requests. It returns
// the indexes of the requests that may go on; a key that belongs to another
// request is decided here.
func (s *Store) bind(ctx context.Context, sale string, requests []seckill.ClaimRequest, decisions []seckill.Decision) ([]int, error) {
	bound := make([]int, 0, len(requests))
	replies := make(map[int]*redis.Cmd)
	pipe := s.client.Pipeline()
	for i, r := range requests {
		if r.Key != "" {
			replies[i] = bindScript.EvalSha(ctx, pipe, []string{boundKey(r.Buyer, r.Key)}, bindValue(sale, r), triedTTL.Milliseconds())
		}
	}
	if len(replies) > 0 {
		if _, err := pipe.Exec(ctx); err != nil && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			return nil, unavailable("bind keys in sale "+sale, err)
		}
	}
	for i, r := range requests {
		if r.Key == "" {
			bound = append(bound, i)
			continue
		}
		value, err := s.boundValue(ctx, sale, r, replies[i])
		if err != nil {
			return nil, err
		}
		if value == bindValue(sale, r) {
			bound = append(bound, i)
		} else {
			decisions[i] = seckill.Decision{Outcome: seckill.OutcomeReused}
		}
	}
	return bound, nil
}

func bindValue(sale string, r seckill.ClaimRequest) string {
	return sale + " " + strconv.FormatInt(r.Quantity, 10)
}

// boundValue reads the reply to a bind; a node that did not know the script is
// sent its text.
func (s *Store) boundValue(ctx context.Context, sale string, r seckill.ClaimRequest, reply *redis.Cmd) (string, error) {
	value, err := reply.Text()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		value, err = bindScript.Eval(ctx, s.client, []string{boundKey(r.Buyer, r.Key)}, bindValue(sale, r), triedTTL.Milliseconds()).Text()
	}
	if err != nil {
		return "", unavailable("bind key in sale "+sale, err)
	}
	return value, nil
}

// saleWords are what the script may answer instead of deciding.
var saleWords = map[string]seckill.Outcome{
	"not_loaded": seckill.OutcomeNotLoaded,
	"fenced":     seckill.OutcomeFenced,
	"corrupt":    seckill.OutcomeCorrupt,
}

func readDecisions(sale string, reply []string, requests []seckill.ClaimRequest, bound []int, decisions []seckill.Decision) error {
	if len(reply) == 1 {
		outcome, known := saleWords[reply[0]]
		if !known {
			return unexpected(sale, reply[0])
		}
		for _, i := range bound {
			decisions[i] = seckill.Decision{Outcome: outcome}
		}
		return nil
	}
	if len(reply) != len(bound)+1 {
		return unexpected(sale, fmt.Sprint(len(reply)-1, " answers to ", len(bound)))
	}
	head, err := readClaimHead(sale, reply[0])
	if err != nil {
		return err
	}
	for k, i := range bound {
		if decisions[i], err = head.decision(reply[k+1], requests[i]); err != nil {
			return err
		}
	}
	return nil
}

// claimHead is the first line of claim.lua's reply: what all accepted claims
// of the batch share. Its Seq is that after the batch.
type claimHead struct {
	shared seckill.AcceptedClaim
	stock  int64
}

func readClaimHead(sale, line string) (claimHead, error) {
	f := strings.Split(line, " ")
	if len(f) != 10 || f[0] != "ok" {
		return claimHead{}, unexpected(sale, line)
	}
	n, err := integers(f[1], f[2], f[3], f[4], f[7], f[8], f[9])
	if err != nil {
		return claimHead{}, unexpected(sale, line)
	}
	return claimHead{stock: n[6], shared: seckill.AcceptedClaim{
		Sale: sale, Epoch: n[0], Seq: n[1], AcceptedAt: time.UnixMilli(n[2]).UTC(),
		PriceMinor: n[3], Currency: f[5], SKU: f[6], PayWindowMS: n[4], Limit: n[5],
	}}, nil
}

// decision reads one answer of claim.lua.
func (h claimHead) decision(answer string, r seckill.ClaimRequest) (seckill.Decision, error) {
	word, rest, _ := strings.Cut(answer, " ")
	d := seckill.Decision{Outcome: seckill.Outcome(word), Epoch: h.shared.Epoch, Seq: h.shared.Seq, Stock: h.stock}
	var err error
	switch word {
	case "reserved":
		accepted := h.shared
		accepted.Claim, accepted.Buyer, accepted.Quantity = r.ID, r.Buyer, r.Quantity
		accepted.Seq, err = strconv.ParseInt(rest, 10, 64)
		d.Accepted = &accepted
		d.Claim = seckill.Claim{ID: r.ID, Sale: h.shared.Sale, Buyer: r.Buyer, Quantity: r.Quantity, Status: seckill.ClaimReserved}
	case "again", "held":
		if word == "again" {
			d.Outcome = seckill.OutcomeReserved
		}
		id, record, _ := strings.Cut(rest, " ")
		d.Claim, d.LogEntry, err = readRecord(h.shared.Sale, id, record)
	case "not_open":
		var at int64
		at, err = strconv.ParseInt(rest, 10, 64)
		d.OpensAt = time.UnixMilli(at).UTC()
		d.RetryIn = d.OpensAt.Sub(h.shared.AcceptedAt)
	case "rate":
		var ms int64
		ms, err = strconv.ParseInt(rest, 10, 64)
		d.RetryIn = time.Duration(ms) * time.Millisecond
	case "ticket_required", "ticket_expired", "key_reused", "limit_reached", "closed", "paused", "sold_out":
	default:
		return d, unexpected(h.shared.Sale, answer)
	}
	if err != nil {
		return d, unexpected(h.shared.Sale, answer)
	}
	return d, nil
}

// ticketArg writes a ticket as claim.lua reads it.
func ticketArg(t seckill.Ticket) string {
	if t.Kind == seckill.TicketNone {
		return ""
	}
	return fmt.Sprintf("%s %d %d", t.Kind, t.Epoch, t.Until.UnixMilli())
}

func integers(texts ...string) ([]int64, error) {
	out := make([]int64, len(texts))
	for i, text := range texts {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read integer: %w", err)
		}
		out[i] = n
	}
	return out, nil
}
