package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// startMax bounds how long a command waits for a server that is starting.
const startMax = 60 * time.Second

func migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "migrate",
		Short: "Make the tables in MySQL and, with NATS_URL, the streams",
		Long: `migrate makes what is missing: tables and columns in MySQL and, when NATS_URL
is set, the streams and the consumer of claims. It waits up to a minute for
servers that are starting, and running it again changes nothing.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), startMax)
			defer cancel()
			store, err := openMySQL()
			if err != nil {
				return err
			}
			defer store.Close() //nolint:errcheck // nothing was left open
			if err := patiently(ctx, store.Migrate); err != nil {
				return err
			}
			if os.Getenv("NATS_URL") == "" {
				return nil
			}
			queue, err := openNATS()
			if err != nil {
				return err
			}
			defer queue.Close() //nolint:errcheck // nothing was left open
			return patiently(ctx, queue.EnsureStreams)
		},
	}
}

// patiently repeats an idempotent step once a second until it works or ctx
// ends, and returns the step's last error.
func patiently(ctx context.Context, step func(context.Context) error) error {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		err := step(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}
