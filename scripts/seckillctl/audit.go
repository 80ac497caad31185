package main

import (
	"github.com/spf13/cobra"

	"seckill/shared/audit"
)

func auditCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "audit ID",
		Short: "Say of each law whether it holds for a sale",
		Long: `audit reads a sale in MySQL and in Redis and prints opened, stock (in Redis; null
if it is not loaded), available (in MySQL), reserved, units by order state, money by
currency (received, refunded, due, kept), and each law as true or false. It
exits 1 if one is false.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
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
			report, err := audit.Sale(cmd.Context(), mysql, redis, args[0])
			if err != nil {
				return err
			}
			if err := write(cmd, report); err != nil {
				return err
			}
			if !report.Laws.Hold() {
				return errLaw
			}
			return nil
		},
	}
}
