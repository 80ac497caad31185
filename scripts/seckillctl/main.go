// Command seckillctl is the operator's tool: it prepares sales, shows them and
// audits them. It reads the same environment as the functions.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// errLaw: an audit found a law that does not hold.
var errLaw = errors.New("a law does not hold")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "seckillctl:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "seckillctl",
		Short: "Prepare, show and audit flash sales",
		Long: `seckillctl prepares, shows and audits flash sales.

It reads the environment of the functions: MYSQL_DSN, REDIS_ADDRS,
REDIS_MASTER, REDIS_PASSWORD, NATS_URL, NATS_CREDS; secrets may also lie in
SECRETS_DIR. Documents are JSON; "-" reads standard input. It exits 1 if
something failed or a law does not hold.`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.AddCommand(migrateCommand(), itemCommand(), saleCommand(), auditCommand(), dlqCommand())
	return cmd
}
