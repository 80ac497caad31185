package seckillhttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

const claimsPath = "/sales/s1/claims"

func document(t *testing.T, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var d map[string]any
	must(t, json.Unmarshal(w.Body.Bytes(), &d))
	return d
}

func TestAcceptedClaimIsPublishedAndAnswered202(t *testing.T) {
	t.Parallel()
	redis, broker := &fakeRedis{claim: reserve}, &fakeBroker{}
	h := seckillhttp.New(testConfig(), redis, broker, fakeBuyers{})
	w := call(h, http.MethodPost, claimsPath, "b1", `{"quantity":2}`)
	d := document(t, w)
	id, _ := d["claim"].(string)
	if w.Code != http.StatusAccepted || d["status"] != "reserved" || d["buyer"] != "b1" || d["quantity"] != 2.0 || d["sale"] != "s1" || !seckill.ValidClaimID(id) {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w.Header().Get("Location") != claimsPath+"/"+id {
		t.Errorf("Location %q", w.Header().Get("Location"))
	}
	if len(broker.taken) != 1 || broker.taken[0].Claim != id {
		t.Errorf("published %+v", broker.taken)
	}
}

// The claim log vouches for a claim when the broker says nothing.
func TestSilentBrokerDoesNotRefuse(t *testing.T) {
	t.Parallel()
	h := seckillhttp.New(testConfig(), &fakeRedis{claim: reserve}, &fakeBroker{silent: true}, fakeBuyers{})
	if w := call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`); w.Code != http.StatusAccepted {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

func TestEachOutcomeHasItsAnswer(t *testing.T) {
	t.Parallel()
	opens := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	ordered := seckill.Claim{ID: "01890000-0000-7000-8000-000000000001", Sale: "s1", Buyer: "b1", Quantity: 1, Status: seckill.ClaimOrdered, PayBy: opens}
	rejected := ordered
	rejected.Status, rejected.Reason = seckill.ClaimRejected, seckill.ReasonSoldOut
	for name, c := range map[string]struct {
		decision seckill.Decision
		status   int
		code     string
		retry    bool
	}{
		"held":        {seckill.Decision{Outcome: seckill.OutcomeHeld, Claim: ordered}, 200, "", false},
		"again":       {seckill.Decision{Outcome: seckill.OutcomeReserved, Claim: ordered}, 202, "", false},
		"rejected":    {seckill.Decision{Outcome: seckill.OutcomeReserved, Claim: rejected}, 200, "", false},
		"sold out":    {seckill.Decision{Outcome: seckill.OutcomeSoldOut}, 409, "sold_out", false},
		"limit":       {seckill.Decision{Outcome: seckill.OutcomeLimit}, 403, "limit_reached", false},
		"no ticket":   {seckill.Decision{Outcome: seckill.OutcomeNoTicket}, 403, "ticket_required", false},
		"old ticket":  {seckill.Decision{Outcome: seckill.OutcomeOldTicket}, 403, "ticket_expired", false},
		"not open":    {seckill.Decision{Outcome: seckill.OutcomeNotOpen, OpensAt: opens}, 425, "not_open", true},
		"closed":      {seckill.Decision{Outcome: seckill.OutcomeClosed}, 410, "closed", false},
		"rate":        {seckill.Decision{Outcome: seckill.OutcomeRate, RetryIn: time.Second}, 429, "rate_limited", true},
		"reused":      {seckill.Decision{Outcome: seckill.OutcomeReused}, 422, "key_reused", false},
		"paused":      {seckill.Decision{Outcome: seckill.OutcomePaused}, 503, "paused", true},
		"fenced":      {seckill.Decision{Outcome: seckill.OutcomeFenced}, 503, "unavailable", true},
		"corrupt":     {seckill.Decision{Outcome: seckill.OutcomeCorrupt}, 503, "unavailable", true},
		"unheard of":  {seckill.Decision{Outcome: "new"}, 503, "unavailable", true},
		"no decision": {seckill.Decision{}, 503, "unavailable", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := seckillhttp.New(testConfig(), &fakeRedis{claim: decideAll(c.decision)}, &fakeBroker{}, fakeBuyers{})
			w := call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`)
			d := document(t, w)
			if w.Code != c.status || (c.code != "" && d["code"] != c.code) || (w.Header().Get("Retry-After") != "") != c.retry {
				t.Fatalf("%d %s %v", w.Code, w.Body, w.Header())
			}
			if c.code == "not_open" && d["opens_at"] != "2030-01-02T03:04:05Z" {
				t.Errorf("opens_at %v", d["opens_at"])
			}
			if c.code == "" && (d["claim"] != ordered.ID || (d["status"] == "ordered") != (d["pay_by"] == "2030-01-02T03:04:05.000Z")) {
				t.Errorf("document %s", w.Body)
			}
		})
	}
}

func TestOurTroubleIsUnknownNotNo(t *testing.T) {
	t.Parallel()
	down := func(string, []seckill.ClaimRequest) ([]seckill.Decision, error) {
		return nil, errors.New("redis is away")
	}
	short := func(string, []seckill.ClaimRequest) ([]seckill.Decision, error) { return nil, nil }
	for _, f := range []func(string, []seckill.ClaimRequest) ([]seckill.Decision, error){down, short} {
		h := seckillhttp.New(testConfig(), &fakeRedis{claim: f}, &fakeBroker{}, fakeBuyers{})
		w := call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`)
		if w.Code != 503 || document(t, w)["code"] != "unavailable" || w.Header().Get("Retry-After") == "" || strings.Contains(w.Body.String(), "redis") {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
}

// A body that is cut or longer than it looks is never taken for the usual one.
func TestUsualBodyIsTakenOnlyWhole(t *testing.T) {
	t.Parallel()
	redis := &fakeRedis{claim: reserve}
	server := httptest.NewServer(seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{}))
	defer server.Close()
	for body, want := range map[string]string{
		"Content-Length: 14\r\n\r\n{\"quantity\":1}":                                     " 202 ",
		"Content-Length: 15\r\n\r\n{\"quantity\":1}\n":                                   " 202 ",
		"Content-Length: 14\r\n\r\n{\"quantity\":7}":                                     " 202 ",
		"Transfer-Encoding: chunked\r\n\r\ne\r\n{\"quantity\":1}\r\n0\r\n\r\n":           " 202 ",
		"Content-Length: 14\r\n\r\n{\"quantity\":x}":                                     " 400 ",
		"Content-Length: 200\r\n\r\n{\"quantity\":1}":                                    " 400 ",
		"Content-Length: 14\r\n\r\n{\"quantity\":":                                       " 400 ",
		"Transfer-Encoding: chunked\r\n\r\ne\r\n{\"quantity\":1}\r\n1\r\n}\r\n0\r\n\r\n": " 400 ",
		"Transfer-Encoding: chunked\r\n\r\ne\r\n{\"quantity\":1}\r\n":                    " 400 ",
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
		must(t, err)
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer b1\r\nContent-Type: application/json\r\n%s", claimsPath, body)
		must(t, err)
		if want == " 400 " { // whoever is waited for would be taken for gone
			must(t, conn.(*net.TCPConn).CloseWrite())
		}
		answer, err := io.ReadAll(conn)
		must(t, err)
		line, _, _ := strings.Cut(string(answer), "\r\n")
		if !strings.Contains(line, want) {
			t.Errorf("%q: %q, want%s", body, line, want)
		}
	}
}

func TestUnknownSaleIsNotAnUnloadedOne(t *testing.T) {
	t.Parallel()
	for known, want := range map[bool]int{false: 404, true: 503} {
		redis := &fakeRedis{claim: decideAll(seckill.Decision{Outcome: seckill.OutcomeNotLoaded}), known: known}
		h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
		if w := call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`); w.Code != want {
			t.Errorf("known %v: %d %s", known, w.Code, w.Body)
		}
	}
}

func TestBadRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	redis := &fakeRedis{claim: reserve}
	h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
	for _, body := range []string{
		"", "null", "[]", `"x"`, "{}", "{", `{"quantity":-5}`, `{"quantity":0}`, `{"quantity":-0}`, `{"quantity":1.5}`, `{"quantity":1e0}`,
		`{"quantity":"1"}`, `{"quantity":null}`, `{"quantity":true}`, `{"quantity":[1]}`, `{"quantity":1e400}`, `{"quantity":101}`,
		`{"quantity":2147483648}`, `{"quantity":9223372036854775807}`, `{"quantity":9223372036854775808}`, `{"quantity":1,"quantity":2}`,
		`{"quantity":1,"QUANTITY":5}`, `{"Quantity":1}`, `{"quantity":1,"buyer":"b2"}`, `{"quantity":1}{"quantity":1}`, `{"quantity":1} x`,
		"\ufeff" + `{"quantity":1}`, "\xff\xfe{\x00", `{"quantity":1}` + strings.Repeat(" ", 1<<20), strings.Repeat("[", 100_000),
	} {
		w := call(h, http.MethodPost, claimsPath, "b1", body, "Content-Type", "application/json")
		if w.Code < 400 || w.Code > 422 || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%.60q: %d %s", body, w.Code, w.Body)
		}
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"no token":         call(h, http.MethodPost, claimsPath, "", `{"quantity":1}`),
		"text":             call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`, "Content-Type", "text/plain"),
		"key too long":     call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`, "Idempotency-Key", strings.Repeat("k", 256)),
		"key not visible":  call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`, "Idempotency-Key", "a b"),
		"key empty":        call(h, http.MethodPost, claimsPath, "b1", `{"quantity":1}`, "Idempotency-Key", ""),
		"sale with braces": call(h, http.MethodPost, "/sales/a%7D%7Bb/claims", "b1", `{"quantity":1}`),
		"sale too long":    call(h, http.MethodPost, "/sales/"+strings.Repeat("s", 65)+"/claims", "b1", `{"quantity":1}`),
		"method":           call(h, http.MethodPut, claimsPath, "b1", `{"quantity":1}`),
		"path":             call(h, http.MethodPost, "/claims", "b1", `{"quantity":1}`),
	} {
		if w.Code < 400 || w.Code > 422 || document(t, w)["code"] == nil {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	if n, _ := redis.counts(); n != 0 {
		t.Errorf("%d batches reached Redis", n)
	}
}

func TestIdempotencyKeyMakesTheClaim(t *testing.T) {
	t.Parallel()
	redis := &fakeRedis{claim: reserve}
	h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
	id := func(path, buyer, key string) any {
		return document(t, call(h, http.MethodPost, path, buyer, `{"quantity":1}`, "Idempotency-Key", key))["claim"]
	}
	first := id(claimsPath, "b1", "k")
	if id(claimsPath, "b1", "k") != first {
		t.Error("the same key must make the same claim")
	}
	for name, other := range map[string]any{"buyer": id(claimsPath, "b2", "k"), "key": id(claimsPath, "b1", "k2"), "sale": id("/sales/s2/claims", "b1", "k")} {
		if other == first {
			t.Errorf("another %s must make another claim", name)
		}
	}
}

// Claims that arrive while a call runs go into the next call together.
func TestClaimsGatherWhileACallRuns(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}, 10), make(chan struct{})
	redis := &fakeRedis{claim: func(sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error) {
		entered <- struct{}{}
		<-release
		return reserve(sale, requests)
	}}
	config := testConfig()
	config.BatchMax, config.QueueMax = 4, 9
	h := seckillhttp.New(config, redis, &fakeBroker{}, fakeBuyers{})
	var wg sync.WaitGroup
	codes := make(chan int, 20)
	post := func(i int) {
		wg.Go(func() { codes <- call(h, http.MethodPost, claimsPath, fmt.Sprint("b", i), `{"quantity":1}`).Code })
	}
	post(0)
	<-entered // the first call is running with one claim; 9 can wait, more cannot
	for i := range 12 {
		post(i + 1)
	}
	refused := 0
	for range 3 {
		if <-codes == 503 {
			refused++
		}
	}
	close(release)
	wg.Wait()
	close(codes)
	for code := range codes {
		if code != 202 {
			t.Errorf("status %d", code)
		}
	}
	sizes := []int{}
	for _, b := range redis.batches {
		sizes = append(sizes, len(b))
	}
	if refused != 3 || fmt.Sprint(sizes) != "[1 4 4 1]" {
		t.Fatalf("refused %d, batches %v", refused, sizes)
	}
}

// What is accepted while the broker is asked is handed to it together, once it
// has answered.
func TestAcceptedClaimsGatherWhileAPublishRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		broker := &fakeBroker{hold: make(chan struct{})}
		config := testConfig()
		config.AckTimeout = time.Minute
		h := seckillhttp.New(config, &fakeRedis{claim: reserve}, broker, fakeBuyers{})
		const later = 20
		answers := make(chan int, 1+later)
		for i := range 1 + later {
			go func() { answers <- call(h, http.MethodPost, claimsPath, fmt.Sprint("b", i), `{"quantity":1}`).Code }()
			if i == 0 {
				synctest.Wait() // the first is at the broker
			}
		}
		synctest.Wait() // the others are decided
		if len(answers) > 0 || !slices.Equal(broker.sizes, []int{1}) {
			t.Errorf("batches of %v while the broker is silent, want the first alone", broker.sizes)
		}
		close(broker.hold)
		for range 1 + later {
			if code := <-answers; code != http.StatusAccepted {
				t.Errorf("answered %d", code)
			}
		}
		if !slices.Equal(broker.sizes, []int{1, later}) {
			t.Errorf("batches of %v, want 1 and %d", broker.sizes, later)
		}
	})
}

// While Redis hangs claims wait; when it is back, those that waited too long
// and those whose clients are gone are not claimed any more.
func TestClaimsThatNobodyWaitsForAreNotMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, claimsThatNobodyWaitsFor)
}

func claimsThatNobodyWaitsFor(t *testing.T) {
	t.Helper()
	entered, release := make(chan struct{}, 10), make(chan struct{})
	redis := &fakeRedis{claim: func(sale string, requests []seckill.ClaimRequest) ([]seckill.Decision, error) {
		entered <- struct{}{}
		<-release
		return reserve(sale, requests)
	}}
	config := testConfig()
	config.DecideTimeout = 300 * time.Millisecond
	h := seckillhttp.New(config, redis, &fakeBroker{}, fakeBuyers{})
	codes := make(chan int, 10)
	go func() { codes <- call(h, http.MethodPost, claimsPath, "first", `{"quantity":1}`).Code }()
	<-entered
	gone, leave := context.WithCancel(t.Context())
	go func() {
		r := httptest.NewRequestWithContext(gone, http.MethodPost, claimsPath, strings.NewReader(`{"quantity":1}`))
		r.Header.Set("Authorization", "Bearer gone")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		codes <- w.Code
	}()
	go func() { codes <- call(h, http.MethodPost, claimsPath, "late", `{"quantity":1}`).Code }()
	synctest.Wait()
	leave()
	if code := <-codes; code != 503 {
		t.Fatalf("a client that is gone: %d", code)
	}
	synctest.Wait() // both wait in the queue
	time.Sleep(2 * config.DecideTimeout)
	close(release)
	for range 2 { // the first may be accepted by now, but he was not kept waiting for it
		if code := <-codes; code != 503 {
			t.Fatalf("a claim that waited too long: %d", code)
		}
	}
	synctest.Wait()
	if n, _ := redis.counts(); n != 1 {
		t.Fatalf("%d batches reached Redis", n)
	}
}

func TestSoldOutIsRememberedUntilAUnitComesBack(t *testing.T) {
	t.Parallel()
	soldOut := seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: 1, Seq: 5}
	redis := &fakeRedis{
		claim:     decideAll(soldOut),
		peek:      seckill.SalePeek{Open: true, Epoch: 1, Seq: 5, Limit: 1},
		claimants: map[string]struct{}{"holder": {}},
	}
	h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
	post := func(buyer string) int {
		return call(h, http.MethodPost, claimsPath, buyer, `{"quantity":1}`).Code
	}
	testenv.Eventually(t, 10*time.Second, func() error { // until the claimants are read
		before, _ := redis.counts()
		post("b1")
		if after, _ := redis.counts(); after != before {
			return errors.New("still asking the script")
		}
		return nil
	})
	before, _ := redis.counts()
	if code := post("b2"); code != 409 {
		t.Errorf("status %d", code)
	}
	if after, _ := redis.counts(); after != before {
		t.Error("a refusal must not ask the script")
	}
	post("holder")
	if after, _ := redis.counts(); after != before+1 {
		t.Error("a holder must be answered by the script")
	}
	for name, peek := range map[string]seckill.SalePeek{
		"a unit is back":     {Open: true, Epoch: 1, Seq: 5, Limit: 1, Stock: 1},
		"somebody claimed":   {Open: true, Epoch: 1, Seq: 6, Limit: 1},
		"the sale was built": {Open: true, Epoch: 2, Seq: 5, Limit: 1},
		"closed or fenced":   {Epoch: 1, Seq: 5, Limit: 1},
	} {
		redis.mu.Lock()
		redis.peek = peek
		redis.mu.Unlock()
		before, _ := redis.counts()
		post("b3")
		if after, _ := redis.counts(); after != before+1 {
			t.Errorf("%s: the script must be asked", name)
		}
	}
}

// For a moment after a look that found the sale sold out nobody is looked for,
// unless he may have an answer of his own.
func TestSoldOutStandsForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		soldOut := seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: 1, Seq: 5}
		redis := &fakeRedis{
			claim:     decideAll(soldOut),
			peek:      seckill.SalePeek{Open: true, Epoch: 1, Seq: 5, Limit: 1},
			claimants: map[string]struct{}{"holder": {}},
		}
		config := testConfig()
		config.SoldOutFor = 5 * time.Millisecond
		h := seckillhttp.New(config, redis, &fakeBroker{}, fakeBuyers{})
		post := func(buyer, body string) (batches, peeks int) {
			batchesBefore, peeksBefore := redis.counts()
			if code := call(h, http.MethodPost, claimsPath, buyer, body).Code; code != http.StatusConflict {
				t.Errorf("%s is answered %d", buyer, code)
			}
			batches, peeks = redis.counts()
			return batches - batchesBefore, peeks - peeksBefore
		}
		post("first", `{"quantity":1}`)
		synctest.Wait() // the claimants are read
		for _, step := range []struct {
			buyer, body    string
			later          time.Duration
			batches, peeks int
		}{
			{"looked for", `{"quantity":1}`, 0, 0, 1},
			{"at once", `{"quantity":1}`, 0, 0, 0},
			{"in time", `{"quantity":1}`, 4 * time.Millisecond, 0, 0},
			{"holder", `{"quantity":1}`, 0, 1, 1},
			{"wants more", `{"quantity":2}`, 0, 1, 1},
			{"after it", `{"quantity":1}`, 5 * time.Millisecond, 0, 1},
		} {
			time.Sleep(step.later)
			if batches, peeks := post(step.buyer, step.body); batches != step.batches || peeks != step.peeks {
				t.Errorf("%s: %d script calls and %d looks, want %d and %d", step.buyer, batches, peeks, step.batches, step.peeks)
			}
		}
	})
}

// Long before the opening everyone is told so without Redis for a second; not
// when the opening is near, nor when somebody may hold a claim already.
func TestNotOpenStandsWhileTheOpeningIsFar(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		in   time.Duration
		seq  int64
		want []int // script calls for an attempt now, at once, and after a second
	}{
		"far":         {time.Hour, 0, []int{1, 0, 1}},
		"near":        {time.Second, 0, []int{1, 1, 1}},
		"once opened": {time.Hour, 7, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				redis := &fakeRedis{claim: decideAll(seckill.Decision{
					Outcome: seckill.OutcomeNotOpen, Epoch: 1, Seq: test.seq, Stock: 5, RetryIn: test.in, OpensAt: time.Now().Add(test.in),
				})}
				h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
				for i, want := range test.want {
					if i == 2 {
						time.Sleep(time.Second)
					}
					before, _ := redis.counts()
					if code := call(h, http.MethodPost, claimsPath, fmt.Sprint("b", i), `{"quantity":1}`).Code; code != http.StatusTooEarly {
						t.Errorf("answered %d", code)
					}
					if after, _ := redis.counts(); after-before != want {
						t.Errorf("attempt %d: %d script calls, want %d", i, after-before, want)
					}
				}
			})
		})
	}
}

// Whoever had a claim in the sale is answered by Redis: a key whose claim is
// over gets its claim again, and no refusal of a new one. Who had none is
// refused, with a key or without.
func TestSoldOutForgetsNoKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := &fakeRedis{
			claim:     decideAll(seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: 1, Seq: 5}),
			peek:      seckill.SalePeek{Open: true, Epoch: 1, Seq: 5, Limit: 1},
			claimants: map[string]struct{}{"cancelled": {}},
		}
		config := testConfig()
		config.SoldOutFor = 5 * time.Millisecond
		h := seckillhttp.New(config, redis, &fakeBroker{}, fakeBuyers{})
		asks := func(buyer, key string) bool {
			before, _ := redis.counts()
			call(h, http.MethodPost, claimsPath, buyer, `{"quantity":1}`, "Idempotency-Key", key)
			after, _ := redis.counts()
			return after != before
		}
		asks("first", "k")
		synctest.Wait() // the claimants are read
		for range 2 {   // by the look, and by the look before
			if asks("new", "k") {
				t.Error("a buyer without a claim must not ask the script")
			}
			if !asks("cancelled", "k") {
				t.Error("a buyer who had a claim must be answered by the script")
			}
		}
	})
}

// A Redis that knows of fewer claims than before has forgotten some: what it
// refuses is unknown until the sale is built again.
func TestOlderRedisRefusesNobody(t *testing.T) {
	t.Parallel()
	redis := &fakeRedis{}
	h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
	for i, step := range []struct {
		epoch, seq int64
		outcome    seckill.Outcome
		code       int
	}{
		{1, 5, seckill.OutcomeSoldOut, http.StatusConflict},
		{1, 4, seckill.OutcomeSoldOut, http.StatusServiceUnavailable},
		{1, 4, seckill.OutcomeRate, http.StatusServiceUnavailable},
		{1, 4, seckill.OutcomeHeld, http.StatusOK},
		{1, 5, seckill.OutcomeSoldOut, http.StatusConflict},
		{2, 0, seckill.OutcomeSoldOut, http.StatusConflict},
		{0, 0, seckill.OutcomeFenced, http.StatusServiceUnavailable},
		{2, 0, seckill.OutcomeSoldOut, http.StatusConflict},
	} {
		d := seckill.Decision{Outcome: step.outcome, Epoch: step.epoch, Seq: step.seq, Stock: 1}
		if step.outcome == seckill.OutcomeHeld {
			d.Claim = seckill.Claim{ID: "c", Sale: "s1", Status: seckill.ClaimOrdered}
		}
		redis.claim = decideAll(d)
		if code := call(h, http.MethodPost, claimsPath, fmt.Sprint("b", i), `{"quantity":1}`).Code; code != step.code {
			t.Errorf("step %d is answered %d, want %d", i, code, step.code)
		}
	}
}

// What is remembered of a sale may fit an older Redis: the look that would
// refuse by it must notice the age, too.
func TestOlderRedisRefusesNobodyByALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		soldOut := seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: 1, Seq: 5}
		redis := &fakeRedis{
			claim:     decideAll(soldOut),
			peek:      seckill.SalePeek{Open: true, Epoch: 1, Seq: 5, Limit: 1},
			claimants: map[string]struct{}{"a": {}},
		}
		h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
		post := func(buyer string) int {
			return call(h, http.MethodPost, claimsPath, buyer, `{"quantity":1}`).Code
		}
		post("first")
		synctest.Wait() // the claimants are read, as of the fifth claim
		redis.claim = decideAll(seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: 1, Seq: 6})
		post("a") // is answered by the script, which knows of a sixth
		redis.claim = decideAll(soldOut)
		if code := post("b"); code != http.StatusServiceUnavailable {
			t.Errorf("a Redis that forgot the sixth claim is believed: %d", code)
		}
	})
}

func TestOwnClaimOnly(t *testing.T) {
	t.Parallel()
	c := seckill.Claim{ID: "01890000-0000-7000-8000-000000000001", Sale: "s1", Buyer: "b1", Quantity: 1, Status: seckill.ClaimReserved}
	redis := &fakeRedis{claims: map[string]seckill.Claim{c.ID: c}, known: true, readable: true}
	h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
	get := func(id, buyer string) *httptest.ResponseRecorder {
		return call(h, http.MethodGet, claimsPath+"/"+id, buyer, "")
	}
	if w := get(c.ID, "b1"); w.Code != 200 || document(t, w)["status"] != "reserved" {
		t.Errorf("own: %d %s", w.Code, w.Body)
	}
	other, missing := get(c.ID, "b2"), get("01890000-0000-7000-8000-000000000002", "b2")
	if other.Code != 404 || other.Body.String() != missing.Body.String() {
		t.Errorf("another's claim must look like none: %s %s", other.Body, missing.Body)
	}
	if w := get("x", "b1"); w.Code != 404 {
		t.Errorf("malformed: %d", w.Code)
	}
	redis.readable = false
	if w := get("01890000-0000-7000-8000-000000000002", "b1"); w.Code != 503 {
		t.Errorf("a claim that Redis may have lost: %d", w.Code)
	}
}

func TestWaitingForTheResult(t *testing.T) {
	t.Parallel()
	c := seckill.Claim{ID: "01890000-0000-7000-8000-000000000001", Sale: "s1", Buyer: "b1", Quantity: 1, Status: seckill.ClaimReserved}
	redis := &fakeRedis{claims: map[string]seckill.Claim{c.ID: c}, readable: true}
	h := seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{})
	type answer struct{ header, body string }
	answers := make(chan answer, 2)
	for _, header := range [][]string{{"Prefer", "respond-async, wait=4"}, {"Accept", "text/event-stream"}} {
		go func() {
			w := call(h, http.MethodGet, claimsPath+"/"+c.ID, "b1", "", header...)
			answers <- answer{header[0], w.Body.String()}
		}()
	}
	c.Status, c.PayBy = seckill.ClaimOrdered, time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	redis.set(c)
	for range 2 {
		a := <-answers
		if !strings.Contains(a.body, `"status":"ordered"`) || (a.header == "Accept") != strings.Contains(a.body, "event: claim\ndata: {") {
			t.Errorf("%s: %s", a.header, a.body)
		}
	}
}
