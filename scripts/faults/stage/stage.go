// Package stage runs the whole system for the fault bench: the programs of all
// functions as child processes, real Redis, MySQL and NATS servers, a proxy on
// each way between them, and a gateway in front.
package stage

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"seckill/scripts/faults/proxy"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/payment"
	"seckill/shared/rebuild"
	"seckill/shared/redisstore"
	"seckill/shared/servers"
)

// Stage is a running system.
type Stage struct {
	Redis     *servers.Redis
	MySQL     *servers.MySQL
	NATS      *servers.NATS
	Functions map[string]*Function
	Gateway   *Gateway
	// Secret signs tokens, callbacks and posts of events.
	Secret string

	// Records, Reservations and Queue are the bench's own ways to the
	// stores, past every proxy; Admin, DB and JS are raw ones.
	Records      *mysqlstore.Store
	Reservations *redisstore.Store
	Queue        *natsqueue.Queue
	Admin        *redis.Client
	DB           *sql.DB
	JS           jetstream.JetStream

	mysqlAddr, natsAddr string
	watch               atomic.Pointer[Watch]
	sweeps              sync.RWMutex // held while there shall be none
	stop                context.CancelFunc
	swept               sync.WaitGroup
	closers             []func()
}

// Options say what runs.
type Options struct {
	// Programs are the functions' paths by name, as Build returns them.
	Programs map[string]string
	// Tool migrates instead of this program, if it is set.
	Tool string
	// SweepEvery is the pace of the cron.
	SweepEvery time.Duration
}

// New starts a system. Close ends it.
func New(ctx context.Context, o Options) (*Stage, error) {
	s := &Stage{Functions: map[string]*Function{}, Secret: rand.Text() + rand.Text()}
	for _, step := range []func() error{
		s.startServers, s.open,
		func() error { return s.migrate(ctx, o.Tool) },
		func() error { return s.startFunctions(o.Programs) },
	} {
		if err := step(); err != nil {
			s.Close()
			return nil, err
		}
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.swept.Go(func() { s.cron(ctx, o.SweepEvery) })
	return s, nil
}

// redisFlags keep every command: what is lost then is what a fault removes.
var redisFlags = []string{"--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0", "--enable-debug-command", "local"}

func (s *Stage) startServers() (err error) {
	if s.Redis, err = servers.NewRedis(redisFlags...); err != nil {
		return err
	}
	if s.MySQL, err = servers.NewMySQL(); err != nil {
		return err
	}
	if s.NATS, err = servers.NewNATS(); err != nil {
		return err
	}
	for _, p := range []interface {
		Start() error
		Remove()
	}{s.Redis, s.MySQL, s.NATS} {
		if err := p.Start(); err != nil {
			return err
		}
		s.closers = append(s.closers, p.Remove)
	}
	cfg, err := mysql.ParseDSN(s.MySQL.DSN)
	if err != nil {
		return fmt.Errorf("parse the DSN: %w", err)
	}
	s.mysqlAddr, s.natsAddr = cfg.Addr, strings.TrimPrefix(s.NATS.URL, "nats://")
	return nil
}

// open connects the bench itself.
func (s *Stage) open() (err error) {
	if s.Reservations, err = redisstore.Open(redisstore.Config{Addrs: []string{s.Redis.Addr}, ConnsMax: 4, Timeout: 2 * time.Second}); err != nil {
		return err
	}
	if s.Records, err = mysqlstore.Open(mysqlstore.Config{DSN: s.MySQL.DSN, ConnsMax: 2}); err != nil {
		return err
	}
	if s.Queue, err = natsqueue.Open(natsqueue.Config{URL: s.NATS.URL}); err != nil {
		return err
	}
	s.Admin = redis.NewClient(&redis.Options{Addr: s.Redis.Addr, ContextTimeoutEnabled: true})
	admin, err := mysql.ParseDSN(s.MySQL.AdminDSN)
	if err != nil {
		return fmt.Errorf("parse the DSN: %w", err)
	}
	admin.ParseTime, admin.Loc, admin.Logger = true, time.UTC, &mysql.NopLogger{}
	admin.Params = map[string]string{"time_zone": "'+00:00'"}
	connector, err := mysql.NewConnector(admin)
	if err != nil {
		return fmt.Errorf("use the DSN: %w", err)
	}
	s.DB = sql.OpenDB(connector)
	s.DB.SetMaxOpenConns(3)
	conn, err := nats.Connect(s.NATS.URL, nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		return fmt.Errorf("connect to nats: %w", err)
	}
	s.closers = append(s.closers, conn.Close, func() {
		_ = errors.Join(s.Admin.Close(), s.DB.Close(), s.Reservations.Close(), s.Records.Close(), s.Queue.Close())
	})
	if s.JS, err = jetstream.New(conn); err != nil {
		return fmt.Errorf("use jetstream: %w", err)
	}
	return nil
}

func (s *Stage) migrate(ctx context.Context, tool string) error {
	if tool == "" {
		if err := s.Records.Migrate(ctx); err != nil {
			return err
		}
	} else {
		cmd := exec.CommandContext(ctx, tool, "migrate")
		cmd.Env = append(os.Environ(), "MYSQL_DSN="+s.MySQL.DSN, "REDIS_ADDRS="+s.Redis.Addr, "NATS_URL="+s.NATS.URL)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("migrate: %w\n%s", err, out)
		}
	}
	return s.Queue.EnsureStreams(ctx)
}

// env is what a function is told. Times are shorter than by default, so that a
// campaign meets more faults in a minute; their order is the same.
func (s *Stage) env(f *Function) []string {
	at := strings.Replace(s.MySQL.DSN, s.mysqlAddr, f.MySQL.Addr(), 1)
	return []string{
		"REDIS_ADDRS=" + f.Redis.Addr(), "MYSQL_DSN=" + at, "NATS_URL=nats://" + f.NATS.Addr(),
		"AUTH_HMAC_SECRET=" + s.Secret, "PAYMENT_WEBHOOK_SECRET=" + s.Secret, "EVENTS_SECRET=" + s.Secret,
		"TARGET_URL=" + s.Gateway.URL + "/function/order-consumer", "PAYMENT_URL=" + s.Gateway.URL + "/pay",
		"NATS_ACK_WAIT=3s", "POST_TIMEOUT=2500ms", "NATS_PUBLISH_TIMEOUT=1s",
		"UNSETTLED_AFTER=1s", "OUTBOX_AFTER=500ms", "MYSQL_CONNS_MAX=4", "LOG_LEVEL=warn",
	}
}

func (s *Stage) startFunctions(programs map[string]string) (err error) {
	if s.Gateway, err = newGateway(s); err != nil {
		return err
	}
	webhooks, err := payment.NewWebhooks(s.Secret)
	if err != nil {
		return err
	}
	if s.Gateway.provider, err = payment.NewSimulated(webhooks, s.Gateway.URL+"/pay", s.Gateway.URL+"/payments/callback"); err != nil {
		return err
	}
	for _, name := range Names() {
		f, err := s.newFunction(name, programs[name])
		if err != nil {
			return err
		}
		s.Functions[name] = f
		if err := s.Gateway.route(f); err != nil {
			return err
		}
	}
	for _, name := range Names() {
		if err := s.Functions[name].Start(); err != nil {
			return err
		}
		s.closers = append(s.closers, s.Functions[name].remove)
	}
	return nil
}

// OnStep has each step of each function told to watch.
func (s *Stage) OnStep(watch Watch) { s.watch.Store(&watch) }

func (s *Stage) tell(function string, when proxy.When, step proxy.Step, reply []byte) bool {
	watch := s.watch.Load()
	return watch == nil || (*watch)(function, when, step, reply)
}

// cron triggers the sweep until ctx ends.
func (s *Stage) cron(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		s.sweeps.RLock()
		_ = s.Sweep(ctx) // one that fails is followed by another
		s.sweeps.RUnlock()
	}
}

// Sweep triggers one sweep and waits for its end.
func (s *Stage) Sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Gateway.URL+"/function/expiry-cron", nil)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d %s", response.StatusCode, body)
	}
	if err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	return nil
}

// HoldSweeps keeps the cron from triggering until release is called.
func (s *Stage) HoldSweeps() (release func()) {
	s.sweeps.Lock()
	return s.sweeps.Unlock
}

// Builder brings sales past the functions, as the operator's tool does.
func (s *Stage) Builder() rebuild.Builder {
	return rebuild.Builder{Records: s.Records, Reservations: s.Reservations, Claims: s.Queue}
}

// Heal ends every trouble on every way.
func (s *Stage) Heal() {
	s.Gateway.Set(nil)
	for _, f := range s.Functions {
		for _, way := range f.Ways() {
			way.Heal()
		}
	}
}

// Close ends everything.
func (s *Stage) Close() {
	if s.stop != nil {
		s.stop()
		s.swept.Wait()
	}
	if s.Gateway != nil {
		s.Gateway.close()
	}
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}
