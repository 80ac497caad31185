package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"seckill/shared/natsqueue"
	"seckill/shared/seckill"
)

// deadMax bounds how many parked events are listed.
const deadMax = 1000

// deadDocument is one parked event.
type deadDocument struct {
	Seq       uint64    `json:"seq"`
	ID        string    `json:"id"`
	Subject   string    `json:"subject"`
	Reason    string    `json:"reason"`
	Delivered int       `json:"delivered"`
	At        time.Time `json:"at"`
	Data      string    `json:"data,omitempty"`
}

func dlqCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "dlq", Short: "Look after parked events (the dead-letter stream)"}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the parked events with their reasons", Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				return withQueue(cmd, func(ctx context.Context, q *natsqueue.Queue) error {
					dead, err := q.Dead(ctx, deadMax)
					if err != nil {
						return err
					}
					list := make([]deadDocument, len(dead))
					for i, d := range dead {
						list[i] = deadDocument{Seq: d.Seq, ID: d.ID, Subject: d.Subject, Reason: d.Reason, Delivered: d.Delivered, At: d.At}
					}
					return write(cmd, list)
				})
			},
		},
		seqCommand("show SEQ", "Show one parked event whole", showDead),
		seqCommand("resend SEQ", "Send a parked event again and take it out", func(cmd *cobra.Command, q *natsqueue.Queue, seq uint64) error {
			return q.Resend(cmd.Context(), seq)
		}),
		seqCommand("release SEQ", "Give the units of a parked claim back and take it out", releaseDead),
		seqCommand("drop SEQ", "Take a parked event out for good; it stays unapplied", func(cmd *cobra.Command, q *natsqueue.Queue, seq uint64) error {
			return q.DropDead(cmd.Context(), seq)
		}),
	)
	return cmd
}

func withQueue(cmd *cobra.Command, do func(context.Context, *natsqueue.Queue) error) error {
	queue, err := openNATS()
	if err != nil {
		return err
	}
	defer queue.Close() //nolint:errcheck // nothing was left open
	return do(cmd.Context(), queue)
}

func seqCommand(use, short string, do func(*cobra.Command, *natsqueue.Queue, uint64) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seq, err := strconv.ParseUint(args[0], 10, 64)
			if err != nil {
				return fmt.Errorf("SEQ: %q is not a number from dlq list", args[0])
			}
			return withQueue(cmd, func(_ context.Context, q *natsqueue.Queue) error { return do(cmd, q, seq) })
		},
	}
}

func showDead(cmd *cobra.Command, q *natsqueue.Queue, seq uint64) error {
	d, err := findDead(cmd.Context(), q, seq)
	if err != nil {
		return err
	}
	return write(cmd, deadDocument{Seq: d.Seq, ID: d.ID, Subject: d.Subject, Reason: d.Reason, Delivered: d.Delivered, At: d.At, Data: string(d.Data)})
}

func findDead(ctx context.Context, q *natsqueue.Queue, seq uint64) (natsqueue.Dead, error) {
	dead, err := q.Dead(ctx, deadMax)
	if err != nil {
		return natsqueue.Dead{}, err
	}
	for _, d := range dead {
		if d.Seq == seq {
			return d, nil
		}
	}
	return natsqueue.Dead{}, fmt.Errorf("no parked event %d", seq)
}

// releaseDead gives a parked claim up: its order is written as cancelled, so
// that no copy of the event can ever become an order, and then its units go
// back, once. What the order needs comes from the claim log, which is sound
// whatever the event is.
func releaseDead(cmd *cobra.Command, q *natsqueue.Queue, seq uint64) error {
	ctx := cmd.Context()
	dead, err := findDead(ctx, q, seq)
	if err != nil {
		return err
	}
	var event struct {
		Data struct {
			Claim string `json:"claim"`
			Sale  string `json:"sale"`
		} `json:"data"`
	}
	if err := json.Unmarshal(dead.Data, &event); err != nil || event.Data.Claim == "" || event.Data.Sale == "" {
		return fmt.Errorf("event %d names no claim: nothing to give back, drop it", seq)
	}
	mysql, err := openMySQL()
	if err != nil {
		return err
	}
	defer mysql.Close() //nolint:errcheck // nothing was left open
	redis, err := openRedis()
	if err != nil {
		return err
	}
	defer redis.Close() //nolint:errcheck // nothing was left open
	accepted, claim, err := redis.FindAccepted(ctx, []string{event.Data.Sale}, event.Data.Claim)
	if err != nil {
		return err
	}
	if claim.Status == seckill.ClaimReserved {
		order, row, err := mysql.CancelUnwritten(ctx, accepted)
		if err != nil {
			return err
		}
		if _, err := redis.Restock(ctx, order.Sale, []seckill.Return{order.Return()}); err != nil {
			return err // the sweep finishes what the outbox holds
		}
		if err := mysql.OutboxReturned(ctx, row.ID); err != nil {
			return err
		}
	}
	return q.DropDead(ctx, seq)
}
