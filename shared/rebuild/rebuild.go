// Package rebuild brings a sale from MySQL into Redis: for the first time
// before it opens, and again whenever Redis lost it, lost a part of it, or came
// back with older data.
package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// Records is the sale in MySQL; mysqlstore.Store is one.
type Records interface {
	Sale(ctx context.Context, id string) (seckill.Sale, error)
	Stock(ctx context.Context, sale string) (seckill.Stock, error)
	// NextEpoch moves the sale, as it was read, to a later epoch;
	// ErrSuperseded if the sale is another by now.
	NextEpoch(ctx context.Context, sale seckill.Sale, to int64) error
	// Snapshot hands over all orders of the sale in chunks, and the stock at
	// the same instant.
	Snapshot(ctx context.Context, sale string, size int, each func([]seckill.Order) error) (seckill.Stock, error)
	// ReturnsPending reports whether units wait in the outbox to be given
	// back in Redis.
	ReturnsPending(ctx context.Context, sale string) (bool, error)
}

// Reservations is the sale in Redis; redisstore.Store is one.
type Reservations interface {
	Head(ctx context.Context, sale string) (seckill.SaleHead, error)
	Unsettled(ctx context.Context, sale, cursor string, minAge time.Duration, sizeMax int) ([]seckill.AcceptedClaim, string, error)
	Fence(ctx context.Context, sale string, epoch int64) error
	NoteDrain(ctx context.Context, sale string, epoch int64, claimsSeq uint64) error
	Begin(ctx context.Context, sale seckill.Sale) error
	Load(ctx context.Context, sale seckill.Sale, orders []seckill.Order) error
	Lift(ctx context.Context, sale seckill.Sale, available, opened, seq int64) error
	Amend(ctx context.Context, sale seckill.Sale) error
}

// Claims is the stream of claims; natsqueue.Queue is one.
type Claims interface {
	PublishClaims(ctx context.Context, claims []seckill.AcceptedClaim, attempt string) []Ack
	ClaimsHead(ctx context.Context) (uint64, error)
	ClaimsApplied(ctx context.Context, seq uint64) (bool, error)
}

// Ack is the broker's pending answer to one published claim.
type Ack = interface {
	Done() <-chan struct{}
	Err() error
	Duplicate() bool
}

// Outcome is what bringing a sale did.
type Outcome string

// The outcomes.
const (
	Fresh    Outcome = "fresh"    // Redis had it, nothing was to do
	Amended  Outcome = "amended"  // Redis had it, a changed field was brought
	Draining Outcome = "draining" // fenced; claims in flight go into MySQL first
	Building Outcome = "building" // somebody else is building it
	Built    Outcome = "built"    // it is open for claims again, or for the first time
)

const (
	// drainMax is how long claims in flight are waited for. A claim that comes
	// later is adopted when it is settled, so waiting is a courtesy to those
	// who were first, and not needed to keep the numbers right.
	drainMax = 20 * time.Second
	// buildMax is how long a build may be silent before it is taken for dead.
	buildMax = 15 * time.Second
	// fillMax bounds a whole build; it does not end with the sweep it began in.
	fillMax = 10 * time.Minute
	// chunk is how many orders or claims are handled at a time.
	chunk = 500
)

// Builder brings sales. It keeps nothing between calls, so any number of them
// may run at the same time: the epoch lets one of them win.
type Builder struct {
	Records      Records
	Reservations Reservations
	Claims       Claims
}

// Bring makes Redis agree with MySQL about one sale, as far as one call can:
// a sale with claims in flight takes several.
func (b Builder) Bring(ctx context.Context, id string) (Outcome, error) {
	outcome, err := b.bring(ctx, id)
	if errors.Is(err, seckill.ErrSuperseded) {
		return Building, nil
	}
	return outcome, wrap("bring", id, err)
}

func (b Builder) bring(ctx context.Context, id string) (Outcome, error) {
	// MySQL first: each claim is counted in Redis before MySQL can have seen
	// it. And the sale anew: whoever lists sales may have done so before
	// another build ended.
	sale, err := b.Records.Sale(ctx, id)
	if err != nil {
		return "", err
	}
	stock, err := b.Records.Stock(ctx, id)
	if err != nil {
		return "", err
	}
	head, err := b.Reservations.Head(ctx, id)
	if err != nil {
		return "", err
	}
	if head.Sale.Epoch > sale.Epoch {
		if sale, err = b.Records.Sale(ctx, id); err != nil { // built in between
			return "", err
		}
	}
	if sound(head, sale, stock) {
		drifted, err := b.drifted(ctx, sale.ID, stock, head)
		if err != nil {
			return "", err
		}
		if !drifted {
			return b.amend(ctx, sale, head)
		}
	}
	switch {
	case sale.Epoch == 0:
		return b.build(ctx, sale, head)
	case head.Fence != seckill.FenceRebuild:
		return b.drain(ctx, sale, head)
	case head.FenceAge >= 0 && head.FenceAge < buildMax: // a clock may have been set back
		return Building, nil
	}
	return b.build(ctx, sale, head)
}

// sound reports whether Redis holds the sale, whole and not older than MySQL:
// it knows of at least as many claims of this epoch as were written.
func sound(head seckill.SaleHead, sale seckill.Sale, stock seckill.Stock) bool {
	return head.Loaded && head.Fence == seckill.FenceNone && head.StockOK &&
		head.Sale.Epoch == sale.Epoch && head.Accepted >= stock.Placed
}

// drifted reports whether a sale at rest has other numbers in Redis than in
// MySQL. At rest means: no claim is unsettled, no return is pending, and MySQL
// did not change between the two looks; so a difference cannot be work under way.
func (b Builder) drifted(ctx context.Context, sale string, stock seckill.Stock, head seckill.SaleHead) (bool, error) {
	if head.Reserved != 0 || (head.Stock-head.Debt == stock.Available && head.Opened == stock.Opened) {
		return false, nil
	}
	pending, err := b.Records.ReturnsPending(ctx, sale)
	if err != nil || pending {
		return false, wrap("look for pending returns", sale, err)
	}
	head, err = b.Reservations.Head(ctx, sale)
	if err != nil {
		return false, wrap("look again at", sale, err)
	}
	after, err := b.Records.Stock(ctx, sale)
	if err != nil {
		return false, wrap("look again at", sale, err)
	}
	// A change of the units is amended, not a drift.
	return head.Reserved == 0 && after == stock && head.Opened == stock.Opened && head.Stock-head.Debt != stock.Available, nil
}

func wrap(what, sale string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s sale %s: %w", what, sale, err)
}

func (b Builder) amend(ctx context.Context, sale seckill.Sale, head seckill.SaleHead) (Outcome, error) {
	if head.Sale.Version >= sale.Version {
		return Fresh, nil
	}
	return Amended, wrap("amend", sale.ID, b.Reservations.Amend(ctx, sale))
}

// drain fences the sale and brings its claims in flight into MySQL; once they
// are there, it builds.
func (b Builder) drain(ctx context.Context, sale seckill.Sale, head seckill.SaleHead) (Outcome, error) {
	epoch := head.Sale.Epoch
	if err := b.Reservations.Fence(ctx, sale.ID, epoch); err != nil {
		return "", wrap("fence", sale.ID, err)
	}
	if !head.FenceNoted {
		return Draining, b.note(ctx, sale.ID, epoch)
	}
	applied, err := b.Claims.ClaimsApplied(ctx, head.FenceSeq)
	if !applied && head.FenceAge >= 0 && head.FenceAge < drainMax {
		return Draining, wrap("drain", sale.ID, err)
	}
	return b.build(ctx, sale, head)
}

// note publishes what the claim log still has, which the build will drop, and
// then notes how far the claims in flight reach.
func (b Builder) note(ctx context.Context, sale string, epoch int64) error {
	cursor := ""
	for {
		claims, next, err := b.Reservations.Unsettled(ctx, sale, cursor, 0, chunk)
		if err != nil && !errors.Is(err, seckill.ErrLost) {
			return wrap("read the claim log of", sale, err)
		}
		for _, ack := range b.Claims.PublishClaims(ctx, claims, "fence") {
			select {
			case <-ack.Done():
			case <-ctx.Done():
				return wrap("publish the claim log of", sale, ctx.Err())
			}
			if err := ack.Err(); err != nil {
				return wrap("publish the claim log of", sale, err)
			}
		}
		if next == "" {
			break
		}
		cursor = next
	}
	seq, err := b.Claims.ClaimsHead(ctx)
	if err != nil {
		return wrap("note the drain of", sale, err)
	}
	return wrap("note the drain of", sale, b.Reservations.NoteDrain(ctx, sale, epoch, seq))
}

// build writes the sale into Redis as a new epoch.
func (b Builder) build(ctx context.Context, sale seckill.Sale, head seckill.SaleHead) (Outcome, error) {
	// Redis may know a later epoch than MySQL, when MySQL is the one that was
	// set back; the new one must be later than both.
	to := max(sale.Epoch, head.Sale.Epoch) + 1
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fillMax)
	defer cancel()
	if err := b.Records.NextEpoch(ctx, sale, to); err != nil {
		return "", wrap("build", sale.ID, err)
	}
	sale.Epoch = to
	return Built, wrap("build", sale.ID, b.fill(ctx, sale))
}

func (b Builder) fill(ctx context.Context, sale seckill.Sale) error {
	if err := b.Reservations.Begin(ctx, sale); err != nil {
		return wrap("begin", sale.ID, err)
	}
	stock, err := b.Records.Snapshot(ctx, sale.ID, chunk, func(orders []seckill.Order) error {
		return b.Reservations.Load(ctx, sale, orders)
	})
	if err != nil {
		return wrap("load", sale.ID, err)
	}
	return wrap("lift the fence of", sale.ID, b.Reservations.Lift(ctx, sale, stock.Available, stock.Opened, stock.Seq))
}
