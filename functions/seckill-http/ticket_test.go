package seckillhttp_test

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
	"seckill/shared/ticket"
)

// newDesk gives tickets out.
func newDesk() *ticket.Desk {
	var secret [32]byte
	_, _ = rand.Read(secret[:])
	return ticket.NewDesk(ticket.Config{Secret: hex.EncodeToString(secret[:]), For: time.Minute, Work: 1000})
}

// doors is the function over a Redis of its own sales.
type doors struct {
	*seckillhttp.Handler
	t     *testing.T
	redis *redisstore.Store
}

func newDoors(t *testing.T, desk *ticket.Desk) doors {
	t.Helper()
	redis, err := redisstore.Open(redisstore.Config{Addrs: []string{testenv.Redis(t)}, ConnsMax: 4, Timeout: 5 * time.Second})
	must(t, err)
	t.Cleanup(func() { _ = redis.Close() })
	return doors{seckillhttp.New(testConfig(), redis, &fakeBroker{}, fakeBuyers{}).TicketsBy(desk), t, redis}
}

// sale puts one on sale.
func (d doors) sale(kind seckill.TicketKind, change func(*seckill.Sale)) seckill.Sale {
	d.t.Helper()
	now := time.Now()
	s := seckill.Sale{
		ID: testenv.Name(d.t), SKU: "tea", PriceMinor: 9900, Currency: "CNY", Units: 2, Limit: 1, Ticket: kind,
		OpensAt: now.Add(-time.Hour), ClosesAt: now.Add(time.Hour), PayWindow: time.Minute, Epoch: 1, Version: 1,
	}
	if change != nil {
		change(&s)
	}
	d.build(s)
	return s
}

func (d doors) build(s seckill.Sale) {
	d.t.Helper()
	must(d.t, d.redis.Begin(d.t.Context(), s))
	must(d.t, d.redis.Lift(d.t.Context(), s, s.Units, s.Units, 0))
}

// answers calls and checks status and code; it returns the document.
func (d doors) answers(status int, code, method, path, buyer, body string, header ...string) map[string]any { //nolint:revive // a request and its answer
	d.t.Helper()
	w := call(d, method, path, buyer, body, header...)
	got := document(d.t, w)
	if text, _ := got["code"].(string); w.Code != status || text != code {
		d.t.Fatalf("%s %s of %s: %d %s, want %d %s", method, path, buyer, w.Code, w.Body, status, code)
	}
	return got
}

func (d doors) claims(status int, code string, sale seckill.Sale, buyer, text string) {
	d.t.Helper()
	d.answers(status, code, http.MethodPost, "/sales/"+sale.ID+"/claims", buyer, `{"quantity":1}`, "Entry-Ticket", text)
}

func (d doors) ticket(sale seckill.Sale, buyer, body string) string {
	d.t.Helper()
	text, _ := d.answers(200, "", http.MethodPost, "/sales/"+sale.ID+"/ticket", buyer, body)["ticket"].(string)
	return text
}

func TestClaimNeedsTheTicketOfItsBuyerInItsSale(t *testing.T) {
	t.Parallel()
	d := newDoors(t, newDesk())
	sale := d.sale(seckill.TicketSigned, nil)
	other := d.sale(seckill.TicketSigned, func(s *seckill.Sale) { s.ID += "-other" })
	alice := d.ticket(sale, "alice", "")
	for _, bad := range []string{"", "x", alice[:len(alice)-2], d.ticket(sale, "bob", ""), d.ticket(other, "alice", "")} {
		d.claims(403, "ticket_required", sale, "alice", bad)
	}
	head, err := d.redis.Head(t.Context(), sale.ID)
	must(t, err)
	if head.Stock != 2 || head.Seq != 0 {
		t.Errorf("the refusals left %+v", head)
	}
	d.claims(202, "", sale, "alice", alice)
	bob := d.ticket(sale, "bob", "")
	sale.Epoch = 2
	d.build(sale)
	d.claims(403, "ticket_expired", sale, "bob", bob)
	d.claims(202, "", sale, "bob", d.ticket(sale, "bob", ""))
	d.claims(202, "", d.sale(seckill.TicketNone, func(s *seckill.Sale) { s.ID += "-none" }), "carol", "")
}

func TestTicketTakesWork(t *testing.T) {
	t.Parallel()
	d := newDoors(t, newDesk())
	sale := d.sale(seckill.TicketWork, nil)
	path := "/sales/" + sale.ID + "/ticket"
	first := d.answers(200, "", http.MethodPost, path, "alice", "")
	if first["challenge"] == nil || first["ticket"] != nil {
		t.Fatalf("the first answer is %v", first)
	}
	solution := solved(t, d.answers(200, "", http.MethodGet, path, "alice", ""))
	d.answers(403, "work_required", http.MethodPost, path, "bob", solution)
	d.answers(403, "work_required", http.MethodPost, path, "alice", `{"altcha":""}`)
	d.answers(400, "invalid", http.MethodPost, path, "alice", `{}x`)
	d.claims(202, "", sale, "alice", d.ticket(sale, "alice", solution))
	// A ticket that took no work does not enter once the sale asks for work.
	easy := d.sale(seckill.TicketSigned, func(s *seckill.Sale) { s.ID += "-easy" })
	text := d.ticket(easy, "bob", "")
	easy.Ticket, easy.Version = seckill.TicketWork, 2
	must(t, d.redis.Amend(t.Context(), easy))
	d.claims(403, "ticket_expired", easy, "bob", text)
}

// solved is the body that solves a puzzle, as a browser would send it.
func solved(t *testing.T, puzzle map[string]any) string {
	t.Helper()
	salt, _ := puzzle["salt"].(string)
	most, _ := puzzle["maxnumber"].(float64)
	for n := range int(most) + 1 {
		if sum := sha256.Sum256([]byte(fmt.Sprint(salt, n))); hex.EncodeToString(sum[:]) == puzzle["challenge"] {
			puzzle["number"], puzzle["took"] = n, 12
			raw, err := json.Marshal(puzzle)
			must(t, err)
			return `{"altcha":"` + base64.StdEncoding.EncodeToString(raw) + `"}`
		}
	}
	t.Fatalf("no number solves %v", puzzle)
	return ""
}

func TestOnlyAnOpenSaleGivesTickets(t *testing.T) {
	t.Parallel()
	d := newDoors(t, newDesk())
	now := time.Now()
	for name, c := range map[string]struct {
		kind   seckill.TicketKind
		change func(*seckill.Sale)
		status int
		code   string
	}{
		"early":  {seckill.TicketSigned, func(s *seckill.Sale) { s.OpensAt = now.Add(time.Minute) }, 425, "not_open"},
		"work":   {seckill.TicketWork, func(s *seckill.Sale) { s.OpensAt = now.Add(time.Minute) }, 425, "not_open"},
		"over":   {seckill.TicketSigned, func(s *seckill.Sale) { s.ClosesAt = now.Add(-time.Minute) }, 410, "closed"},
		"paused": {seckill.TicketSigned, func(s *seckill.Sale) { s.Paused = true }, 503, "paused"},
		"none":   {seckill.TicketNone, func(*seckill.Sale) {}, 404, "not_found"},
	} {
		sale := d.sale(c.kind, func(s *seckill.Sale) { c.change(s); s.ID += "-" + name })
		d.answers(c.status, c.code, http.MethodPost, "/sales/"+sale.ID+"/ticket", "alice", "")
		d.answers(c.status, c.code, http.MethodGet, "/sales/"+sale.ID+"/ticket", "alice", "")
	}
	must(t, d.redis.Register(t.Context(), []string{"known"}))
	d.answers(503, "unavailable", http.MethodPost, "/sales/known/ticket", "alice", "")
	d.answers(404, "not_found", http.MethodPost, "/sales/unheard-of/ticket", "alice", "")
	d.answers(404, "not_found", http.MethodGet, "/sales/"+d.sale(seckill.TicketSigned, nil).ID+"/ticket", "alice", "")
	d.answers(401, "unauthenticated", http.MethodPost, "/sales/s1/ticket", "", "")
}

// Without the secret nobody can be let in, and nobody is.
func TestNoSecretNoEntry(t *testing.T) {
	t.Parallel()
	d := newDoors(t, ticket.NewDesk(ticket.Config{}))
	sale := d.sale(seckill.TicketSigned, nil)
	d.answers(503, "unavailable", http.MethodPost, "/sales/"+sale.ID+"/ticket", "alice", "")
	d.claims(403, "ticket_required", sale, "alice", "signed.1.9999999999999.AA")
}

// A sold-out sale that is remembered tells nobody without a ticket, and asks
// the script for nobody.
func TestRememberedRefusalAsksForTheTicket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		redis := &fakeRedis{
			claim:     decideAll(seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: 1, Seq: 5}),
			peek:      seckill.SalePeek{Open: true, Epoch: 1, Seq: 5, Limit: 1, Ticket: seckill.TicketWork},
			claimants: map[string]struct{}{},
		}
		config := testConfig()
		config.SoldOutFor = 5 * time.Millisecond
		desk := newDesk()
		h := seckillhttp.New(config, redis, &fakeBroker{}, fakeBuyers{}).TicketsBy(desk)
		bob := ticket.Holder{Sale: "s1", Buyer: "bob"}
		good, _ := desk.Issue(bob, seckill.TicketWork, 1, time.Now())
		old, _ := desk.Issue(bob, seckill.TicketWork, 2, time.Now())
		call(h, http.MethodPost, claimsPath, "first", `{"quantity":1}`)
		synctest.Wait() // the claimants are read
		before, _ := redis.counts()
		for range 2 { // by the look, and by the look before
			for text, want := range map[string]string{good: "sold_out", old: "ticket_expired", "": "ticket_required"} {
				if w := call(h, http.MethodPost, claimsPath, "bob", `{"quantity":1}`, "Entry-Ticket", text); document(t, w)["code"] != want {
					t.Errorf("%q is answered %s, want %s", text, w.Body, want)
				}
			}
		}
		if after, _ := redis.counts(); after != before {
			t.Errorf("%d script calls", after-before)
		}
	})
}
