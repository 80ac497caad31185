package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/shared/seckill"
)

// readRecord reads a claim's record "status|buyer|units|extra"; extra is the
// log entry of a reserved claim, the deadline of an ordered one, the reason of
// a rejected one.
func readRecord(sale, id, record string) (seckill.Claim, string, error) {
	f := strings.Split(record, "|")
	if len(f) != 4 {
		return seckill.Claim{}, "", unexpected(sale, record)
	}
	units, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return seckill.Claim{}, "", unexpected(sale, record)
	}
	c := seckill.Claim{ID: id, Sale: sale, Buyer: f[1], Quantity: units, Status: seckill.ClaimStatus(f[0])}
	switch c.Status {
	case seckill.ClaimReserved:
		return c, f[3], nil
	case seckill.ClaimOrdered:
		ms, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil {
			return seckill.Claim{}, "", unexpected(sale, record)
		}
		c.PayBy = time.UnixMilli(ms).UTC()
	case seckill.ClaimRejected:
		c.Reason = seckill.Reason(f[3])
	case seckill.ClaimReleased:
	default:
		return seckill.Claim{}, "", unexpected(sale, record)
	}
	return c, "", nil
}

// recordExtra is the last part of a settled claim's record.
func recordExtra(status seckill.ClaimStatus, payBy time.Time, reason seckill.Reason) string {
	switch status {
	case seckill.ClaimOrdered:
		return strconv.FormatInt(payBy.UnixMilli(), 10)
	case seckill.ClaimRejected:
		return string(reason)
	case seckill.ClaimReserved, seckill.ClaimReleased:
	}
	return ""
}

// ClaimOf returns a claim by its sale and id; seckill.ErrNotFound if Redis
// does not know it.
func (s *Store) ClaimOf(ctx context.Context, sale, id string) (seckill.Claim, error) {
	claims, err := s.ClaimsOf(ctx, sale, []string{id})
	if err != nil {
		return seckill.Claim{}, err
	}
	if claims[0].ID == "" {
		return seckill.Claim{}, fmt.Errorf("claim %s in sale %s: %w", id, sale, seckill.ErrNotFound)
	}
	return claims[0], nil
}

// ClaimsOf returns the claims of one sale with these ids, in their order, by
// one read. A claim that Redis does not know has an empty ID.
func (s *Store) ClaimsOf(ctx context.Context, sale string, ids []string) ([]seckill.Claim, error) {
	records, err := s.client.HMGet(ctx, claimsKey(sale), ids...).Result()
	if err != nil {
		return nil, unavailable("read claims of sale "+sale, err)
	}
	claims := make([]seckill.Claim, len(ids))
	for i, record := range records {
		text, known := record.(string)
		if !known {
			continue
		}
		if claims[i], _, err = readRecord(sale, ids[i], text); err != nil {
			return nil, err
		}
	}
	return claims, nil
}

// ClaimsOfMany returns the claims of many sales with these ids, by sale and in
// no order, in one round trip (on a Cluster one to each node, at once). What
// cannot be read is absent; the error is the first that kept something away.
func (s *Store) ClaimsOfMany(ctx context.Context, wanted map[string][]string) (map[string][]seckill.Claim, error) {
	type read struct {
		sale    string
		ids     []string
		records *redis.SliceCmd
	}
	var reads []read
	pipe := s.client.Pipeline()
	for sale, all := range wanted {
		for ids := range slices.Chunk(all, BatchMax) { // Redis does something else in between
			reads = append(reads, read{sale, ids, pipe.HMGet(ctx, claimsKey(sale), ids...)})
		}
	}
	if len(reads) == 0 {
		return nil, nil
	}
	_, first := pipe.Exec(ctx)
	if first != nil {
		first = unavailable("read claims of many sales", first)
	}
	claims := make(map[string][]seckill.Claim, len(wanted))
	for _, r := range reads {
		for i, record := range r.records.Val() {
			text, known := record.(string)
			if !known {
				continue
			}
			claim, _, err := readRecord(r.sale, r.ids[i], text)
			if err != nil {
				if first == nil {
					first = err
				}
				continue
			}
			claims[r.sale] = append(claims[r.sale], claim)
		}
	}
	return claims, first
}

// FindAccepted looks for a claim by its id alone in the given sales and
// returns it; a claim that is still reserved comes with all that its order
// needs. seckill.ErrNotFound if none of the sales knows it.
func (s *Store) FindAccepted(ctx context.Context, sales []string, id string) (seckill.AcceptedClaim, seckill.Claim, error) {
	pipe := s.client.Pipeline()
	replies := make([]*redis.StringCmd, len(sales))
	for i, sale := range sales {
		replies[i] = pipe.HGet(ctx, claimsKey(sale), id)
	}
	if len(sales) > 0 {
		if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
			return seckill.AcceptedClaim{}, seckill.Claim{}, unavailable("find claim "+id, err)
		}
	}
	for i, sale := range sales {
		record, err := replies[i].Result()
		if err != nil {
			continue
		}
		claim, entry, err := readRecord(sale, id, record)
		if err != nil || claim.Status != seckill.ClaimReserved {
			return seckill.AcceptedClaim{}, claim, err
		}
		accepted, err := s.logEntry(ctx, sale, entry)
		return accepted, claim, err
	}
	return seckill.AcceptedClaim{}, seckill.Claim{}, fmt.Errorf("claim %s: %w", id, seckill.ErrNotFound)
}

// logEntry reads one entry of the claim log; seckill.ErrPending if it ended
// meanwhile: the claim was settled and its order can be read.
func (s *Store) logEntry(ctx context.Context, sale, entry string) (seckill.AcceptedClaim, error) {
	messages, err := s.client.XRange(ctx, logKey(sale), entry, entry).Result()
	if err != nil {
		return seckill.AcceptedClaim{}, unavailable("read claim log of sale "+sale, err)
	}
	if len(messages) == 0 {
		return seckill.AcceptedClaim{}, fmt.Errorf("claim log entry %s of sale %s: %w", entry, sale, seckill.ErrPending)
	}
	return readEntry(sale, messages[0])
}

// readEntry reads what claim.lua wrote into the claim log.
func readEntry(sale string, m redis.XMessage) (seckill.AcceptedClaim, error) {
	text, _ := m.Values["claim"].(string)
	f := strings.Split(text, "|")
	if len(f) != 11 {
		return seckill.AcceptedClaim{}, unexpected(sale, text)
	}
	n, err := integers(f[2], f[4], f[6], f[7], f[8], f[9], f[10])
	if err != nil {
		return seckill.AcceptedClaim{}, unexpected(sale, text)
	}
	return seckill.AcceptedClaim{
		Claim: f[0], Sale: sale, SKU: f[3], Buyer: f[1], Quantity: n[0], PriceMinor: n[1], Currency: f[5],
		PayWindowMS: n[2], Limit: n[3], Epoch: n[4], Seq: n[5], AcceptedAt: time.UnixMilli(n[6]).UTC(),
	}, nil
}

// Unsettled returns up to sizeMax claims of the log that are older than
// minAge and come after the cursor ("" begins), oldest first, and the cursor
// for the next call ("" when there are no more). An entry that cannot be read
// is logged and left out.
func (s *Store) Unsettled(ctx context.Context, sale, cursor string, minAge time.Duration, sizeMax int) ([]seckill.AcceptedClaim, string, error) {
	now, err := s.client.Time(ctx).Result()
	if err != nil {
		return nil, "", unavailable("read the time of redis", err)
	}
	from := "-"
	if cursor != "" {
		from = "(" + cursor
	}
	until := "+"
	if minAge > 0 {
		until = strconv.FormatInt(now.Add(-minAge).UnixMilli(), 10)
	}
	messages, err := s.client.XRangeN(ctx, logKey(sale), from, until, int64(sizeMax)).Result()
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil, "", fmt.Errorf("claim log of sale %s: %w: %w", sale, seckill.ErrLost, err)
	}
	if err != nil {
		return nil, "", unavailable("read claim log of sale "+sale, err)
	}
	claims := make([]seckill.AcceptedClaim, 0, len(messages))
	for _, m := range messages {
		cursor = m.ID
		claim, err := readEntry(sale, m)
		if err != nil {
			// One spoiled entry must not keep the others from being published.
			slog.ErrorContext(ctx, "a claim log entry cannot be read", "sale", sale, "entry", m.ID, "error", err)
			continue
		}
		claims = append(claims, claim)
	}
	if len(messages) < sizeMax {
		cursor = ""
	}
	return claims, cursor, nil
}
