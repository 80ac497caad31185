package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"seckill/shared/config"
	"seckill/shared/rebuild"
	"seckill/shared/seckill"
)

// saleDocument is what "sale put" reads and prints.
type saleDocument struct {
	ID         string    `json:"id"`
	SKU        string    `json:"sku"`
	PriceMinor int64     `json:"price_minor"`
	Currency   string    `json:"currency"`
	Units      int64     `json:"units"`
	Limit      int64     `json:"limit"`
	OpensAt    time.Time `json:"opens_at"`
	ClosesAt   time.Time `json:"closes_at"`
	PayWindow  string    `json:"pay_window"`
	Ticket     string    `json:"ticket"`
}

// noTicket is how a document says that a claim needs no ticket; so does
// leaving it out.
const noTicket = "none"

// defaults are what a document may leave out.
type defaults struct {
	PayWindow string `envconfig:"PAY_WINDOW" default:"15m"`
}

func (d saleDocument) sale() (seckill.Sale, error) {
	var otherwise defaults
	if err := config.Load(&otherwise); err != nil {
		return seckill.Sale{}, err
	}
	window, err := time.ParseDuration(cmp.Or(d.PayWindow, otherwise.PayWindow))
	if err != nil {
		return seckill.Sale{}, &seckill.FieldError{Field: "pay_window", Detail: `must be a duration like "15m"`}
	}
	ticket := seckill.TicketKind(d.Ticket)
	if d.Ticket == noTicket {
		ticket = seckill.TicketNone
	}
	return seckill.Sale{
		ID: d.ID, SKU: d.SKU, PriceMinor: d.PriceMinor, Currency: d.Currency, Units: d.Units, Limit: d.Limit,
		OpensAt: d.OpensAt, ClosesAt: d.ClosesAt, PayWindow: window, Ticket: ticket,
	}, nil
}

func documentOf(s seckill.Sale) saleDocument {
	return saleDocument{
		ID: s.ID, SKU: s.SKU, PriceMinor: s.PriceMinor, Currency: s.Currency, Units: s.Units, Limit: s.Limit,
		OpensAt: s.OpensAt, ClosesAt: s.ClosesAt, PayWindow: s.PayWindow.String(), Ticket: cmp.Or(string(s.Ticket), noTicket),
	}
}

func saleCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sale", Short: "Keep sales"}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "put FILE.json",
			Short: "Make or change a sale",
			Long: `put makes a sale or changes it, also while it is open. Units can be added and
taken away, never below what is held; the limit and the SKU of a sale that was
opened stay. Buyers pay the price of the moment of their claim.

Document: {"id","sku","price_minor","currency","units","limit","opens_at",
"closes_at","pay_window","ticket"}; instants are RFC 3339 with offset, pay_window
is a duration like "15m" (default PAY_WINDOW, else 15m). ticket is what a claim
needs to enter: "none" (the default), "signed", which the page fetches once the
sale is open, or "work", for which the buyer's browser also solves a puzzle.`,
			Args: cobra.ExactArgs(1),
			RunE: putSale,
		},
		&cobra.Command{
			Use:   "open ID",
			Short: "Bring a sale into Redis now",
			Long: `open brings a sale from MySQL into Redis, so that claims are answered: "not
open" before opens_at, decided from then on. The sweep does the same by itself
every ten seconds. A sale that Redis lost is rebuilt; that can take up to a
minute while claims in flight are written first.`,
			Args: cobra.ExactArgs(1),
			RunE: openSale,
		},
		&cobra.Command{
			Use:   "status ID",
			Short: "Show a sale in MySQL and in Redis",
			Args:  cobra.ExactArgs(1),
			RunE:  saleStatus,
		},
	)
	return cmd
}

func putSale(cmd *cobra.Command, args []string) error {
	var d saleDocument
	if err := readDocument(cmd, args[0], &d); err != nil {
		return err
	}
	sale, err := d.sale()
	if err != nil {
		return err
	}
	s, err := openStores()
	defer s.close()
	if err != nil {
		return err
	}
	if sale, err = s.mysql.PutSale(cmd.Context(), sale); err != nil {
		return err
	}
	if err := s.bring(cmd.Context(), sale.ID); err != nil {
		return err
	}
	return write(cmd, documentOf(sale))
}

func openSale(cmd *cobra.Command, args []string) error {
	s, err := openStores()
	defer s.close()
	if err != nil {
		return err
	}
	return s.bring(cmd.Context(), args[0])
}

// bringMax bounds how long a sale may take to come into Redis.
const bringMax = 90 * time.Second

// bring makes Redis and every cache agree with MySQL about one sale.
func (s stores) bring(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, bringMax)
	defer cancel()
	builder := rebuild.Builder{Records: s.mysql, Reservations: s.redis, Claims: s.queue}
	err := patiently(ctx, func(ctx context.Context) error {
		outcome, err := builder.Bring(ctx, id)
		if err == nil && (outcome == rebuild.Draining || outcome == rebuild.Building) {
			err = fmt.Errorf("sale %s: %s: %w", id, outcome, seckill.ErrUnavailable)
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.announce(ctx, id)
}

// announce tells the functions that a sale changed.
func (s stores) announce(ctx context.Context, id string) error {
	sale, err := s.mysql.Sale(ctx, id)
	if err != nil {
		return err
	}
	known, err := s.mysql.SalesToPrepare(ctx, seckill.SaleLengthMax)
	if err != nil {
		return err
	}
	ids := make([]string, len(known))
	for i, k := range known {
		ids[i] = k.ID
	}
	if err := s.redis.Register(ctx, ids); err != nil {
		return err
	}
	if err := s.forgetItem(ctx, sale.SKU); err != nil {
		return err
	}
	return s.queue.Changed(ctx, seckill.EventSaleChanged, sale.ID, sale.Version)
}

// forgetItem drops the item's document in Redis; replicas drop theirs when
// they hear of the change.
func (s stores) forgetItem(ctx context.Context, sku string) error {
	return s.redis.ForgetItem(ctx, sku)
}

// saleState is what "sale status" prints.
type saleState struct {
	saleDocument
	State    seckill.SaleState `json:"state"`
	Epoch    int64             `json:"epoch"`
	Loaded   bool              `json:"loaded"`
	Fence    seckill.Fence     `json:"fence,omitempty"`
	Stock    int64             `json:"stock"`
	Reserved int64             `json:"reserved"`
	Claims   int64             `json:"claims"`
}

func saleStatus(cmd *cobra.Command, args []string) error {
	mysql, err := openMySQL()
	if err != nil {
		return err
	}
	defer mysql.Close() //nolint:errcheck // only read
	redis, err := openRedis()
	if err != nil {
		return err
	}
	defer redis.Close() //nolint:errcheck // only read
	sale, err := mysql.Sale(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	head, err := redis.Head(cmd.Context(), args[0])
	if err != nil {
		return err
	}
	return write(cmd, saleState{
		saleDocument: documentOf(sale), State: sale.State(time.Now()), Epoch: sale.Epoch, Loaded: head.Loaded,
		Fence: head.Fence, Stock: head.Stock, Reserved: head.Reserved, Claims: head.Accepted,
	})
}
