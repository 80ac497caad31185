package main_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"seckill/shared/audit"
	"seckill/shared/identity"
	"seckill/shared/payment"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// system is a running flash sale, seen from outside.
type system struct {
	t      *testing.T
	base   string
	secret string   // of the buyers' tokens
	env    []string // with which seckillctl reads the same data
	ctl    string   // the path of seckillctl
	client *http.Client
}

// build compiles a command and returns the path of the binary.
func build(t *testing.T, pkg string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "bin")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, pkg)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, text)
	}
	return out
}

// start runs a binary until the test ends, then asks it to stop and waits.
func start(t *testing.T, path string, env []string, args ...string) io.Reader {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + t.TempDir()}, env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", filepath.Base(path), err)
		}
	})
	return out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newSystem(t *testing.T, base, secret string, env []string) *system {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}
	t.Cleanup(transport.CloseIdleConnections)
	return &system{
		t: t, base: base, secret: secret, env: env, ctl: build(t, "seckill/scripts/seckillctl"),
		client: &http.Client{Transport: transport, Timeout: 30 * time.Second},
	}
}

const testSecret = "only-a-test-knows-this-secret-0123456789"

// oneProcess is go run ./scripts/local with everything embedded.
func oneProcess(t *testing.T) *system {
	t.Helper()
	out := start(t, build(t, "seckill/scripts/local"), []string{"AUTH_HMAC_SECRET=" + testSecret}, "-addr", "127.0.0.1:0", "-opens-in", "0s")
	var base string
	var env []string
	lines := bufio.NewScanner(out)
	for lines.Scan() && len(env) < 3 {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, "flash sale on "); ok {
			base = rest
		}
		if strings.HasPrefix(line, "REDIS_ADDRS=") || strings.HasPrefix(line, "MYSQL_DSN=") || strings.HasPrefix(line, "NATS_URL=") {
			env = append(env, line)
		}
		if strings.HasPrefix(line, "NATS_URL=") {
			break
		}
	}
	go io.Copy(io.Discard, out) //nolint:errcheck // so that the process never blocks
	if base == "" || len(env) != 3 {
		t.Fatalf("local did not say where it is: %q %q", base, env)
	}
	return newSystem(t, base, testSecret, append(env, "MYSQL_CONNS_MAX=1"))
}

// manyProcesses is every function's own binary on real servers, behind a
// gateway that routes like OpenFaaS'.
func manyProcesses(t *testing.T) *system {
	t.Helper()
	redis := testenv.RedisOwn(t)
	env := []string{
		"REDIS_ADDRS=" + redis.Addr, "MYSQL_DSN=" + testenv.MySQL(t), "NATS_URL=" + testenv.NATS(t),
		"AUTH_HMAC_SECRET=" + testSecret, "PAYMENT_WEBHOOK_SECRET=" + testSecret, "EVENTS_SECRET=" + testSecret, "LOG_LEVEL=warn",
	}
	gateway := &router{functions: map[string]*httputil.ReverseProxy{}}
	server := &http.Server{Handler: gateway, ReadHeaderTimeout: 5 * time.Second}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	base := "http://" + listener.Addr().String()
	env = append(env, "TARGET_URL="+base+"/function/order-consumer", "PAYMENT_URL="+base+"/pay")
	s := newSystem(t, base, testSecret, env)
	s.seckillctl("migrate")
	for _, name := range []string{"seckill-http", "order-consumer", "expiry-cron", "item-detail", "order-http", "nats-bridge"} {
		port := freePort(t)
		start(t, build(t, "seckill/functions/"+name+"/cmd"), append(env, fmt.Sprint("PORT=", port)))
		gateway.functions[name] = httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: fmt.Sprint("127.0.0.1:", port)})
	}
	webhooks, err := payment.NewWebhooks(testSecret)
	must(t, err)
	gateway.provider, err = payment.NewSimulated(webhooks, base+"/pay", base+"/payments/callback")
	must(t, err)
	go server.Serve(listener)                //nolint:errcheck // ends with the test
	t.Cleanup(func() { _ = server.Close() }) // before the functions stop
	for name := range gateway.functions {
		s.waitReady(name)
	}
	s.put("item", map[string]any{"sku": "demo", "name": "Tea 🧨", "description": "", "image_url": ""})
	s.put("sale", map[string]any{
		"id": "demo", "sku": "demo", "price_minor": 9900, "currency": "CNY", "units": 100, "limit": 1, "pay_window": "15m",
		"opens_at": time.Now().Format(time.RFC3339), "closes_at": time.Now().Add(time.Hour).Format(time.RFC3339),
	})
	return s
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close() //nolint:errcheck // only its port is wanted
	return l.Addr().(*net.TCPAddr).Port
}

// router is the gateway of manyProcesses.
type router struct {
	functions map[string]*httputil.ReverseProxy
	provider  http.Handler
}

func (g *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	short := map[string]string{"sales": "seckill-http", "items": "item-detail", "orders": "order-http", "payments": "order-http"}
	first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	name := short[first]
	if first == "function" {
		name, rest, _ = strings.Cut(rest, "/")
		r.URL.Path = "/" + rest
	}
	switch f := g.functions[name]; {
	case f != nil:
		f.ServeHTTP(w, r)
	case first == "pay":
		g.provider.ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (s *system) waitReady(function string) {
	s.t.Helper()
	testenv.Eventually(s.t, 30*time.Second, func() error {
		code, body, err := s.call(http.MethodGet, "/function/"+function+"/_/ready", "", nil)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%s: %d %s", function, code, body)
		}
		return err
	})
}

// seckillctl runs the operator's tool and returns what it printed.
func (s *system) seckillctl(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.ctl, args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("seckillctl %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (s *system) put(what string, document map[string]any) {
	s.t.Helper()
	data, err := json.Marshal(document)
	must(s.t, err)
	path := filepath.Join(s.t.TempDir(), what+".json")
	must(s.t, os.WriteFile(path, data, 0o600))
	s.seckillctl(what, "put", path)
}

// call sends a request as a buyer ("" is nobody) and returns the answer.
func (s *system) call(method, path, buyer string, body any, header ...string) (int, map[string]any, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		content = strings.NewReader(string(data))
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, content)
	if err != nil {
		return 0, nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if buyer != "" {
		token, err := identity.Sign(s.secret, buyer, time.Hour)
		if err != nil {
			return 0, nil, err
		}
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := s.client.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	data, err := io.ReadAll(response.Body)
	var document map[string]any
	if err == nil && strings.Contains(response.Header.Get("Content-Type"), "json") {
		err = json.Unmarshal(data, &document)
	}
	return response.StatusCode, document, err
}

// waitOpen waits until the item's page says that its sale is open and loaded.
func (s *system) waitOpen() {
	s.t.Helper()
	testenv.Eventually(s.t, 20*time.Second, func() error {
		code, d, err := s.call(http.MethodGet, "/items/demo", "", nil)
		if err == nil && (code != http.StatusOK || !strings.Contains(fmt.Sprint(d["sales"]), "state:open stock:100")) {
			err = fmt.Errorf("%d %v", code, d)
		}
		return err
	})
}

// rush lets buyers claim one unit each, all at once, and returns the claims
// of those who were told 202; everyone else must be told sold_out.
func (s *system) rush(prefix string, n int) map[string]string {
	s.t.Helper()
	gate, won := make(chan struct{}), map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-gate
			buyer := fmt.Sprint(prefix, i)
			code, d, err := s.call(http.MethodPost, "/sales/demo/claims", buyer, map[string]int{"quantity": 1})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && code == http.StatusAccepted:
				won[buyer] = fmt.Sprint(d["claim"])
			case err != nil || code != http.StatusConflict || d["code"] != "sold_out":
				s.t.Errorf("%s: %d %v %v", buyer, code, d, err)
			}
		})
	}
	close(gate)
	wg.Wait()
	return won
}

// wantUnits sweeps until the audit says how many units are unpaid, paid and in
// stock, with every law holding all the time.
func (s *system) wantUnits(unpaid, paid, stock int64) {
	s.t.Helper()
	testenv.Eventually(s.t, 60*time.Second, func() error {
		s.sweep()
		var r audit.Report
		if err := json.Unmarshal([]byte(s.seckillctl("audit", "demo")), &r); err != nil {
			return err
		}
		if r.Orders[seckill.OrderUnpaid] != unpaid || r.Orders[seckill.OrderPaid] != paid || r.Stock == nil || *r.Stock != stock || r.Reserved != 0 {
			return fmt.Errorf("want %d unpaid, %d paid, stock %d: %+v", unpaid, paid, stock, r)
		}
		return nil
	})
}

// sweep triggers the cron function the way each platform does, in turn.
func (s *system) sweep() {
	s.t.Helper()
	for _, header := range [][]string{
		{"X-Topic", "cron-function"},
		{"Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/ping", "Ce-Type", "dev.knative.sources.ping"},
	} {
		if code, d, err := s.call(http.MethodPost, "/function/expiry-cron", "", nil, header...); err != nil || code != http.StatusOK {
			s.t.Fatalf("sweep: %d %v %v", code, d, err)
		}
	}
}

// letDeadlinesPass moves the deadline of every unpaid order into the past.
func (s *system) letDeadlinesPass() {
	s.t.Helper()
	for _, line := range s.env {
		dsn, ok := strings.CutPrefix(line, "MYSQL_DSN=")
		if !ok {
			continue
		}
		db, err := sql.Open("mysql", dsn)
		must(s.t, err)
		_, err = db.ExecContext(s.t.Context(), "UPDATE orders SET pay_by = created_at WHERE status = 'unpaid'")
		must(s.t, err)
		must(s.t, db.Close())
	}
}

// pay takes an order through the simulated provider.
func (s *system) pay(buyer, order string) {
	s.t.Helper()
	code, d, err := s.call(http.MethodPost, "/orders/"+order+"/payment", buyer, map[string]any{})
	if err != nil || code >= 300 {
		s.t.Fatalf("start payment: %d %v %v", code, d, err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, fmt.Sprint(d["pay_url"]), strings.NewReader("result=succeeded"))
	must(s.t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := s.client.Do(r)
	must(s.t, err)
	_ = response.Body.Close()
	if response.StatusCode >= 400 {
		s.t.Fatalf("the provider answered %d", response.StatusCode)
	}
}

// TestSaleEndToEnd sells the 100 units of demo to 2,000 buyers, then lets
// orders be paid, cancelled and expire, and sells what came back.
func TestSaleEndToEnd(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T) *system{"one process": oneProcess, "many processes": manyProcesses} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			s.waitOpen()
			won := s.rush("b", 2000)
			if len(won) != 100 {
				t.Fatalf("%d buyers won 100 units", len(won))
			}
			var payer, canceller, other string
			for buyer, claim := range won {
				code, d, err := s.call(http.MethodPost, "/sales/demo/claims", buyer, map[string]int{"quantity": 1})
				if err != nil || code != http.StatusOK || d["claim"] != claim {
					t.Fatalf("who asks again gets his claim: %d %v %v, want %s", code, d, err, claim)
				}
				payer, canceller, other = canceller, other, buyer
			}
			code, d, err := s.call(http.MethodGet, "/sales/demo/claims/"+won[payer], payer, nil, "Prefer", "wait=20")
			if err != nil || code != http.StatusOK || d["status"] != "ordered" || d["order"] != won[payer] {
				t.Fatalf("claim: %d %v %v", code, d, err)
			}
			s.pay(payer, won[payer])
			if code, d, err := s.call(http.MethodPost, "/orders/"+won[canceller]+"/cancel", canceller, nil); err != nil || code != http.StatusOK {
				t.Fatalf("cancel: %d %v %v", code, d, err)
			}
			if code, _, _ := s.call(http.MethodGet, "/orders/"+won[payer], other, nil); code != http.StatusNotFound {
				t.Fatalf("another's order: %d", code)
			}
			s.letDeadlinesPass()
			testenv.Eventually(t, 60*time.Second, func() error {
				s.sweep()
				code, d, err := s.call(http.MethodGet, "/orders/"+won[other], other, nil)
				if err == nil && (code != http.StatusOK || d["status"] != "expired") {
					err = fmt.Errorf("%d %v", code, d)
				}
				return err
			})
			s.wantUnits(0, 1, 99)
			again := s.rush("c", 300)
			if len(again) != 99 {
				t.Fatalf("%d buyers won the 99 units that came back", len(again))
			}
			s.wantUnits(99, 1, 0)
		})
	}
}
