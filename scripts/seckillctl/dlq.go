package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"seckill/shared/natsqueue"
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
	dead, err := q.Dead(cmd.Context(), deadMax)
	if err != nil {
		return err
	}
	for _, d := range dead {
		if d.Seq == seq {
			return write(cmd, deadDocument{Seq: d.Seq, ID: d.ID, Subject: d.Subject, Reason: d.Reason, Delivered: d.Delivered, At: d.At, Data: string(d.Data)})
		}
	}
	return fmt.Errorf("no parked event %d", seq)
}
