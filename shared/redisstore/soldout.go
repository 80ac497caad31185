package redisstore

import (
	"context"
	"fmt"

	"seckill/shared/seckill"
)

// Peek takes a short look at a sale, by plain reads of two keys.
func (s *Store) Peek(ctx context.Context, sale string) (seckill.SalePeek, error) {
	pipe := s.client.Pipeline()
	state := pipe.HMGet(ctx, saleKey(sale), "epoch", "seq", "limit", "fence", "paused", "opens_ms", "closes_ms", "held")
	stock, now := pipe.Get(ctx, stockKey(sale)), pipe.Time(ctx)
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
	n, err := integers(texts[0], texts[1], texts[2], texts[4], texts[5], texts[6], texts[7], texts[8])
	if err != nil {
		return seckill.SalePeek{}, nil //nolint:nilerr // not loaded, or spoiled: claim.lua says which
	}
	ms := now.Val().UnixMilli()
	return seckill.SalePeek{
		Open:  n[3] == 0 && ms >= n[4] && ms < n[5],
		Epoch: n[0], Seq: n[1], Limit: n[2], Held: n[6], Stock: n[7],
	}, nil
}

// holdersMax bounds the buyers that Holders returns.
const holdersMax = 1_000_000

// Holders returns every buyer who holds units of the sale as of the returned
// look: no claim was accepted while they were read. seckill.ErrUnavailable if
// claims kept coming, or there are too many holders.
func (s *Store) Holders(ctx context.Context, sale string) (map[string]struct{}, seckill.SalePeek, error) {
	before, err := s.Peek(ctx, sale)
	if err != nil {
		return nil, before, err
	}
	holders := make(map[string]struct{})
	cursor := uint64(0)
	for {
		var page []string
		page, cursor, err = s.client.HScan(ctx, saleKeys(sale)[2], cursor, "", 1000).Result()
		if err != nil {
			return nil, before, unavailable("read holders of sale "+sale, err)
		}
		for i := 0; i < len(page); i += 2 { // buyer and what he holds, in turn
			holders[page[i]] = struct{}{}
		}
		if cursor == 0 {
			break
		}
		if len(holders) > holdersMax {
			return nil, before, fmt.Errorf("sale %s has more than %d holders: %w", sale, holdersMax, seckill.ErrUnavailable)
		}
	}
	after, err := s.Peek(ctx, sale)
	if err == nil && (after.Epoch != before.Epoch || after.Seq != before.Seq || after.Held != before.Held) {
		err = fmt.Errorf("the holders of sale %s changed: %w", sale, seckill.ErrUnavailable)
	}
	return holders, after, err
}
