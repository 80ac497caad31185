package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/rebuild"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/servers"
)

// stage is the services that everything is measured on.
type stage struct {
	options options
	redis   *servers.Redis
	mysql   *servers.MySQL
	nats    *servers.NATS
	secret  string
	bin     string // folder of the functions' programs

	reservations *redisstore.Store
	records      *mysqlstore.Store
	queue        *natsqueue.Queue
	admin        *redis.Client
	js           jetstream.JetStream
}

// How durable the services are; facts states it.
var (
	redisFlags = []string{"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-min-size", "2gb"}
	mysqlFlags = []string{"--innodb-buffer-pool-size=512M", "--innodb-log-file-size=512M", "--innodb-flush-log-at-trx-commit=1"}
)

func newStage(ctx context.Context, o options) (*stage, error) {
	s := &stage{options: o, secret: rand.Text() + rand.Text()}
	for _, step := range []func(context.Context) error{s.startServers, s.open, s.build} {
		if err := step(ctx); err != nil {
			return nil, err // what was started ends with this process
		}
	}
	return s, nil
}

func (s *stage) startServers(context.Context) (err error) {
	fmt.Fprintln(os.Stderr, "starting redis, mariadb and nats")
	if s.redis, err = servers.NewRedis(redisFlags...); err != nil {
		return err
	}
	if s.mysql, err = servers.NewMySQL(mysqlFlags...); err != nil {
		return err
	}
	if s.nats, err = servers.NewNATS(); err != nil {
		return err
	}
	for _, start := range []func() error{s.redis.Start, s.mysql.Start, s.nats.Start} {
		if err := start(); err != nil {
			return err
		}
	}
	return nil
}

// open connects the benchmark itself and lays out tables and streams.
func (s *stage) open(ctx context.Context) (err error) {
	if s.reservations, err = redisstore.Open(redisstore.Config{Addrs: []string{s.redis.Addr}, ConnsMax: 8, Timeout: 5 * time.Second}); err != nil {
		return err
	}
	if s.records, err = mysqlstore.Open(mysqlstore.Config{DSN: s.mysql.DSN, ConnsMax: 4}); err != nil {
		return err
	}
	if s.queue, err = natsqueue.Open(natsqueue.Config{URL: s.nats.URL}); err != nil {
		return err
	}
	s.admin = redis.NewClient(&redis.Options{Addr: s.redis.Addr, ReadTimeout: time.Minute})
	conn, err := nats.Connect(s.nats.URL, nats.MaxReconnects(-1))
	if err != nil {
		return err
	}
	if s.js, err = jetstream.New(conn); err != nil {
		return err
	}
	if err := s.records.Migrate(ctx); err != nil {
		return err
	}
	return s.queue.EnsureStreams(ctx)
}

// functionNames are the programs that are built.
func functionNames() []string {
	return []string{"seckill-http", "order-consumer", "expiry-cron", "item-detail", "order-http", "nats-bridge"}
}

// build makes the functions' programs as their image does.
func (s *stage) build(ctx context.Context) error {
	fmt.Fprintln(os.Stderr, "building the functions")
	dir, err := servers.NewDir("bin")
	if err != nil {
		return err
	}
	s.bin = dir
	for _, name := range functionNames() {
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, name), "./functions/"+name+"/cmd")
		cmd.Dir, cmd.Env = s.options.root, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
	}
	return nil
}

// program is a started HTTP program.
type program struct {
	*servers.Process
	name string
	url  string
}

// env is what every function is told, and what it is measured against: one core
// each, as their containers have.
func (s *stage) env() []string {
	return []string{
		"REDIS_ADDRS=" + s.redis.Addr, "MYSQL_DSN=" + s.mysql.DSN, "NATS_URL=" + s.nats.URL,
		"AUTH_HMAC_SECRET=" + s.secret, "PAYMENT_WEBHOOK_SECRET=" + s.secret, "LOG_LEVEL=warn", "GOMAXPROCS=1",
	}
}

// function prepares one of the functions' programs with more settings.
func (s *stage) function(name string, env ...string) (*program, error) {
	return s.program(name, filepath.Join(s.bin, name), nil, "/_/ready", env...)
}

// self prepares this program in another role.
func (s *stage) self(path string, args ...string) (*program, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return s.program(args[0], exe, args, path)
}

func (s *stage) program(name, path string, args []string, ready string, env ...string) (*program, error) {
	port, err := servers.FreePort()
	if err != nil {
		return nil, err
	}
	dir, err := servers.NewDir(name)
	if err != nil {
		return nil, err
	}
	p := &program{name: name, url: "http://" + servers.HostPort(port)}
	p.Process = &servers.Process{
		Path: path, Args: args, Dir: dir, Env: append(append(s.env(), "PORT="+strconv.Itoa(port)), env...),
		Ping: func(ctx context.Context) error { return get(ctx, p.url+ready) },
	}
	return p, nil
}

// get is nil if the answer is 200.
func get(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s was answered %d", url, response.StatusCode)
	}
	return nil
}

// start starts programs and returns what ends them.
func start(programs ...*program) (end func(), err error) {
	var started []*program
	end = func() {
		for _, p := range started {
			p.Remove()
		}
	}
	for _, p := range programs {
		if err := p.Start(); err != nil {
			end()
			return nil, err
		}
		started = append(started, p)
	}
	return end, nil
}

// sale makes a sale with a name of its own and brings it into Redis.
func (s *stage) sale(ctx context.Context, units int64) (seckill.Sale, error) {
	return s.saleWith(ctx, units, time.Hour)
}

func (s *stage) saleWith(ctx context.Context, units int64, payWindow time.Duration) (seckill.Sale, error) {
	id := "bench-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	if _, err := s.records.PutItem(ctx, seckill.Item{SKU: id, Name: "限量茶 · Limited Tea", Description: "An item of the benchmark."}); err != nil {
		return seckill.Sale{}, err
	}
	now := time.Now()
	sale, err := s.records.PutSale(ctx, seckill.Sale{
		ID: id, SKU: id, PriceMinor: 9900, Currency: "CNY", Units: units, Limit: 1,
		OpensAt: now.Add(-time.Second), ClosesAt: now.Add(12 * time.Hour), PayWindow: payWindow,
	})
	if err != nil {
		return sale, err
	}
	_, err = rebuild.Builder{Records: s.records, Reservations: s.reservations, Claims: s.queue}.Bring(ctx, sale.ID)
	return sale, err
}

// clear drops what a round left in Redis and the broker, so that each round
// finds them alike. Nobody consumes claims while it runs.
func (s *stage) clear(ctx context.Context) error {
	if err := s.admin.FlushAll(ctx).Err(); err != nil {
		return fmt.Errorf("clear redis: %w", err)
	}
	stream, err := s.js.Stream(ctx, natsqueue.StreamClaims)
	if err != nil {
		return fmt.Errorf("clear claims: %w", err)
	}
	return stream.Purge(ctx)
}
