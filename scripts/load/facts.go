package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"strings"

	_ "github.com/go-sql-driver/mysql" // the driver of the line below
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
)

// fact is a circumstance that a number is worthless without.
type fact struct{ name, value string }

// facts tells the circumstances of the run.
func (l *load) facts(ctx context.Context) []fact {
	facts := []fact{
		{"model", l.options.modelText()},
		{"connections", thousands(int64(l.options.conns))},
		{"machine", machine()},
		{"load generator", runtime.Version() + ", on the same machine unless -url says otherwise: " + l.options.url},
	}
	if l.stores == nil {
		return append(facts, fact{"durability", "not known to this run: it was given no stores"})
	}
	return append(facts,
		fact{"Redis", redisFacts(ctx, l.stores.env.RedisAddrs)},
		fact{"MySQL", mysqlFacts(ctx, l.stores.env.MySQLDSN)},
		fact{"NATS", natsFacts(l.stores.env.NATSURL)},
	)
}

func (o options) modelText() string {
	switch {
	case o.model == "closed":
		return "closed: a connection sends the next request when it has its answer; time counts from sending"
	case o.rate == 0:
		return "open: all arrive at one instant; time counts from that instant"
	}
	return fmt.Sprintf("open: a Poisson process of %s arrivals/s; time counts from the planned arrival", thousands(int64(o.rate)))
}

func machine() string {
	text := fmt.Sprintf("%d cores, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return text
	}
	for line := range strings.Lines(string(info)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return text + ", " + strings.TrimSpace(value)
		}
	}
	return text
}

func redisFacts(ctx context.Context, addrs []string) string {
	client := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs})
	defer client.Close() //nolint:errcheck // nothing was written
	info := client.Info(ctx, "server").Val()
	version := "version unknown"
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			version = strings.TrimSpace(v)
		}
	}
	config := client.ConfigGet(ctx, "*").Val()
	if config["appendonly"] == "yes" {
		return version + ", append-only file, appendfsync " + config["appendfsync"]
	}
	return version + fmt.Sprintf(", no append-only file, snapshots %q", config["save"])
}

func mysqlFacts(ctx context.Context, dsn string) string {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return "not reached: " + err.Error()
	}
	defer db.Close() //nolint:errcheck // nothing was written
	var version string
	var flush, binlog int
	err = db.QueryRowContext(ctx, `SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin`).Scan(&version, &flush, &binlog)
	if err != nil {
		return "not asked: " + err.Error()
	}
	return fmt.Sprintf("%s, innodb_flush_log_at_trx_commit=%d, binary log %s", version, flush, []string{"off", "on"}[binlog])
}

func natsFacts(url string) string {
	if url == "" {
		return "not known to this run: no NATS_URL"
	}
	conn, err := nats.Connect(url)
	if err != nil {
		return "not reached: " + err.Error()
	}
	defer conn.Close()
	return conn.ConnectedServerVersion() + ", JetStream file storage; written at once, flushed to the disk by the server's sync_interval (2 min unless set)"
}
