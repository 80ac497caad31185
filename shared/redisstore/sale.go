package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/shared/seckill"
)

// Head returns what Redis knows of a sale as a whole, at one instant.
func (s *Store) Head(ctx context.Context, sale string) (seckill.SaleHead, error) {
	reply, err := s.scripts.head.Run(ctx, s.client, saleKeys(sale)).StringSlice()
	if err != nil {
		return seckill.SaleHead{}, unavailable("read sale "+sale, err)
	}
	if len(reply) == 0 {
		return seckill.SaleHead{}, nil
	}
	if len(reply) < 3 || len(reply)%2 == 0 {
		return seckill.SaleHead{}, unexpected(sale, fmt.Sprint(len(reply), " parts"))
	}
	f := fields{"now_ms": reply[0], "stock": reply[1]}
	for i := 3; i < len(reply); i += 2 {
		f[reply[i]] = reply[i+1]
	}
	h := f.head(sale)
	h.StockOK = reply[2] == "sound"
	return h, nil
}

// fields are the fields of a sale's hash; one that is missing or not a number
// reads as zero, and head.lua calls such a sale unsound.
type fields map[string]string

func (f fields) int(name string) int64 {
	n, err := strconv.ParseInt(f[name], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (f fields) time(name string) time.Time { return time.UnixMilli(f.int(name)).UTC() }

func (f fields) head(sale string) seckill.SaleHead {
	h := seckill.SaleHead{
		Loaded: true,
		Sale: seckill.Sale{
			ID: sale, SKU: f["sku"], PriceMinor: f.int("price_minor"), Currency: f["currency"],
			Units: f.int("opened"), Limit: f.int("limit"), OpensAt: f.time("opens_ms"), ClosesAt: f.time("closes_ms"),
			PayWindow: time.Duration(f.int("pay_window_ms")) * time.Millisecond, Paused: f["paused"] == "1",
			Ticket: seckill.TicketKind(f["ticket"]),
			Epoch:  f.int("epoch"), Version: f.int("version"),
		},
		Stock: f.int("stock"), Opened: f.int("opened"), Held: f.int("held"), Reserved: f.int("reserved"),
		Debt: f.int("debt"), Seq: f.int("seq"), Accepted: f.int("seq") - f.int("lift_seq"), Fence: seckill.Fence(f["fence"]),
		FenceSeq: uint64(max(0, f.int("fence_seq"))), Now: f.time("now_ms"),
	}
	_, h.FenceNoted = f["fence_seq"]
	if h.Fence != seckill.FenceNone {
		h.FenceAge = h.Now.Sub(f.time("fence_ms"))
	}
	return h
}

// Fence stops claims of a sale until it is built anew, if Redis holds the
// given epoch of it (0: does not hold it); seckill.ErrSuperseded otherwise.
func (s *Store) Fence(ctx context.Context, sale string, epoch int64) error {
	return s.build(ctx, s.scripts.fence, sale, "fenced", epoch)
}

// NoteDrain notes how far the claims in flight of a fenced sale reach in the
// stream of claims; the first note stays. seckill.ErrSuperseded if the sale
// is not drained any more, or is at another epoch.
func (s *Store) NoteDrain(ctx context.Context, sale string, epoch int64, claimsSeq uint64) error {
	return s.build(ctx, s.scripts.note, sale, "noted", epoch, strconv.FormatUint(claimsSeq, 10))
}

// Begin drops what Redis holds of the sale and begins to build it behind the
// fence, as epoch sale.Epoch; seckill.ErrSuperseded if a newer one is there.
func (s *Store) Begin(ctx context.Context, sale seckill.Sale) error {
	args := []any{sale.Epoch, sale.ClosesAt.UnixMilli(), "version", sale.Version, "sku", sale.SKU, "limit", sale.Limit}
	return s.build(ctx, s.scripts.open, sale.ID, "begun", append(args, mutable(sale)...)...)
}

// mutable are the fields of a sale that may change while it lives.
func mutable(sale seckill.Sale) []any {
	paused := "0"
	if sale.Paused {
		paused = "1"
	}
	return []any{
		"price_minor", sale.PriceMinor, "currency", sale.Currency, "opens_ms", sale.OpensAt.UnixMilli(),
		"pay_window_ms", sale.PayWindow.Milliseconds(), "paused", paused, "ticket", string(sale.Ticket),
	}
}

// Load writes orders of the sale into the build of epoch sale.Epoch, in
// chunks of BatchMax.
func (s *Store) Load(ctx context.Context, sale seckill.Sale, orders []seckill.Order) error {
	for start := 0; start < len(orders); start += BatchMax {
		chunk := orders[start:min(start+BatchMax, len(orders))]
		args := make([]any, 1, 1+5*len(chunk))
		args[0] = sale.Epoch
		for _, o := range chunk {
			status := o.Status.ClaimStatus()
			args = append(args, o.ID, o.Buyer, o.Quantity, string(status), recordExtra(status, o.PayBy, o.Reason))
		}
		if err := s.build(ctx, s.scripts.load, sale.ID, "loaded", args...); err != nil {
			return err
		}
	}
	return nil
}

// Lift ends the build of epoch sale.Epoch: sets the stock and opens the sale
// for claims. available, opened and seq come from the same snapshot as the
// loaded orders. After a loss the sequence leaps, so that claims that Redis
// had counted and lost are told apart from new ones.
func (s *Store) Lift(ctx context.Context, sale seckill.Sale, available, opened, seq int64) error {
	if sale.Epoch > 1 {
		seq += seckill.UnitsMax
	}
	return s.build(ctx, s.scripts.lift, sale.ID, "open", sale.Epoch, available, opened, seq)
}

func (s *Store) build(ctx context.Context, sc *redis.Script, sale, want string, args ...any) error {
	switch reply, err := s.word(ctx, sc, sale, args...); {
	case err != nil:
		return err
	case reply == "superseded":
		return fmt.Errorf("build sale %s: %w", sale, seckill.ErrSuperseded)
	case reply != want && reply != "same":
		return unexpected(sale, reply)
	}
	return nil
}

// Amend brings a changed sale into Redis without touching what is held. It
// does nothing if this version or a newer one is there; seckill.ErrUnavailable
// while the sale is fenced.
func (s *Store) Amend(ctx context.Context, sale seckill.Sale) error {
	args := []any{sale.Version, sale.Units, sale.ClosesAt.UnixMilli()}
	reply, err := s.word(ctx, s.scripts.amend, sale.ID, append(args, mutable(sale)...)...)
	if err == nil && reply != "amended" && reply != "same" {
		err = unexpected(sale.ID, reply)
	}
	return err
}
