package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"seckill/shared/seckill"
)

// Settle tells Redis what became of claims of one sale, in chunks of
// BatchMax; the answers stand in their order. Repeating it changes nothing.
func (s *Store) Settle(ctx context.Context, sale string, settlements []seckill.Settlement) ([]seckill.Settled, error) {
	answers := make([]seckill.Settled, 0, len(settlements))
	for start := 0; start < len(settlements); start += BatchMax {
		chunk := settlements[start:min(start+BatchMax, len(settlements))]
		args := make([]any, 0, 6*len(chunk))
		for _, c := range chunk {
			args = append(args, c.Claim, c.Buyer, c.Quantity, string(c.Status), recordExtra(c.Status, c.PayBy, c.Reason), c.Epoch)
		}
		words, err := s.settled(ctx, s.scripts.settle, sale, args)
		if err != nil {
			return nil, err
		}
		answers = append(answers, words...)
	}
	return answers, nil
}

// Restock gives the units of claims of one sale back, each exactly once, in
// chunks of BatchMax; the answers stand in their order.
func (s *Store) Restock(ctx context.Context, sale string, returns []seckill.Return) ([]seckill.Settled, error) {
	answers := make([]seckill.Settled, 0, len(returns))
	for start := 0; start < len(returns); start += BatchMax {
		chunk := returns[start:min(start+BatchMax, len(returns))]
		args := make([]any, 0, 3*len(chunk))
		for _, r := range chunk {
			args = append(args, r.Claim, r.Buyer, r.Quantity)
		}
		words, err := s.settled(ctx, s.scripts.restock, sale, args)
		if err != nil {
			return nil, err
		}
		answers = append(answers, words...)
	}
	return answers, nil
}

func (s *Store) settled(ctx context.Context, sc *redis.Script, sale string, args []any) ([]seckill.Settled, error) {
	words, err := sc.Run(ctx, s.client, saleKeys(sale), args...).StringSlice()
	if err != nil {
		return nil, unavailable("settle in sale "+sale, err)
	}
	answers := make([]seckill.Settled, len(words))
	for i, word := range words {
		switch answer := seckill.Settled(word); answer {
		case seckill.SettledDone, seckill.SettledSame, seckill.SettledAdopted, seckill.SettledGone, seckill.SettledFenced:
			answers[i] = answer
		default:
			return nil, unexpected(sale, word)
		}
	}
	return answers, nil
}
