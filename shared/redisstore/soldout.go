package redisstore

import (
	"context"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// Peek takes a short look at a sale, by plain reads of three keys.
func (s *Store) Peek(ctx context.Context, sale string) (seckill.SalePeek, error) {
	pipe := s.client.Pipeline()
	state := pipe.HMGet(ctx, saleKey(sale), "epoch", "seq", "limit", "fence", "paused", "opens_ms", "closes_ms", "ticket")
	stock, claims, now := pipe.Get(ctx, stockKey(sale)), pipe.HLen(ctx, claimsKey(sale)), pipe.Time(ctx)
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return seckill.SalePeek{}, unavailable("peek at sale "+sale, err)
	}
	texts := make([]string, 0, 9)
	for _, value := range append(state.Val(), stock.Val()) {
		text, _ := value.(string)
		texts = append(texts, text)
	}
	if len(texts) != 9 || texts[3] != "" {
		return seckill.SalePeek{}, nil
	}
	n, err := integers(texts[0], texts[1], texts[2], texts[4], texts[5], texts[6], texts[8])
	if err != nil {
		return seckill.SalePeek{}, nil //nolint:nilerr // not loaded, or spoiled: claim.lua says which
	}
	ms := now.Val().UnixMilli()
	return seckill.SalePeek{
		Open:  n[3] == 0 && ms >= n[4] && ms < n[5],
		Epoch: n[0], Seq: n[1], Limit: n[2], Stock: n[6], Claims: claims.Val(),
		Loaded: true, Paused: n[3] != 0, Ticket: seckill.TicketKind(texts[7]),
		OpensAt: time.UnixMilli(n[4]).UTC(), ClosesAt: time.UnixMilli(n[5]).UTC(), Now: now.Val().UTC(),
	}, nil
}

// claimantsMax bounds the claims that Claimants reads.
const claimantsMax = 1_000_000

// Claimants returns every buyer who has or had a claim in the sale as of the
// returned look: no claim was accepted while they were read.
// seckill.ErrUnavailable if claims kept coming, or there are too many.
func (s *Store) Claimants(ctx context.Context, sale string) (map[string]struct{}, seckill.SalePeek, error) {
	before, err := s.Peek(ctx, sale)
	if err != nil {
		return nil, before, err
	}
	if before.Claims > claimantsMax {
		return nil, before, fmt.Errorf("sale %s has more than %d claims: %w", sale, claimantsMax, seckill.ErrUnavailable)
	}
	claimants := make(map[string]struct{}, before.Claims)
	for cursor := uint64(0); ; {
		var page []string
		page, cursor, err = s.client.HScan(ctx, claimsKey(sale), cursor, "", 1000).Result()
		if err != nil {
			return nil, before, unavailable("read claimants of sale "+sale, err)
		}
		for i := 0; i+1 < len(page); i += 2 { // claim and its record, in turn
			claim, _, err := readRecord(sale, page[i], page[i+1])
			if err != nil {
				return nil, before, err
			}
			if seckill.ValidClaimID(claim.ID) { // a sale begins with one that is none
				claimants[claim.Buyer] = struct{}{}
			}
		}
		if cursor == 0 {
			break
		}
	}
	after, err := s.Peek(ctx, sale)
	if err == nil && (after.Epoch != before.Epoch || after.Seq != before.Seq || after.Claims != before.Claims) {
		err = fmt.Errorf("the claimants of sale %s changed: %w", sale, seckill.ErrUnavailable)
	}
	return claimants, after, err
}
