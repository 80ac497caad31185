package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"seckill/scripts/faults/stage"
	"seckill/shared/identity"
	"seckill/shared/seckill"
)

// shop is where buyers ask, and the history of what they were told.
type shop struct {
	stage   *stage.Stage
	client  *http.Client
	history *history
}

func newShop(s *stage.Stage) *shop {
	return &shop{stage: s, history: &history{}, client: &http.Client{
		Timeout: 3 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 128},
	}}
}

// buyer buys in one sale, again and again.
type buyer struct {
	shop  *shop
	sale  seckill.Sale
	name  string
	token string
	rng   *rand.Rand
	// ending is closed when nobody shall begin another purchase.
	ending <-chan struct{}
	bought int
}

func (s *shop) buyer(sale seckill.Sale, name string, seed uint64, ending <-chan struct{}) (*buyer, error) {
	token, err := identity.Sign(s.stage.Secret, name, 12*time.Hour)
	if err != nil {
		return nil, err
	}
	return &buyer{shop: s, sale: sale, name: name, token: token, rng: rand.New(rand.NewPCG(seed, 1)), ending: ending}, nil //nolint:gosec // repeatable on purpose
}

// document is any answer's body.
type document struct {
	Code   string `json:"code"`
	Claim  string `json:"claim"`
	Order  string `json:"order"`
	ID     string `json:"id"`
	Status any    `json:"status"` // a state, or a problem's number
	Reason string `json:"reason"`
	PayURL string `json:"pay_url"`
	Sales  []struct {
		ID    string `json:"id"`
		Stock *int64 `json:"stock"`
	} `json:"sales"`
}

// request is what a buyer sends.
type request struct {
	method, path string
	body         string
	header       [2]string // one more, if it has a name
}

// ask sends one request and fills in what came back.
func (b *buyer) ask(ctx context.Context, a answer, q request) (answer, document) {
	var d document
	a.sale, a.buyer, a.start = b.sale.ID, b.name, time.Now()
	r, err := http.NewRequestWithContext(ctx, q.method, b.shop.stage.Gateway.URL+q.path, strings.NewReader(q.body))
	if err != nil {
		return a, d
	}
	r.Header.Set("Authorization", "Bearer "+b.token)
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.header[0] != "" {
		r.Header.Set(q.header[0], q.header[1])
	}
	response, err := b.shop.client.Do(r)
	if err == nil {
		var data []byte
		data, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err == nil && json.Unmarshal(data, &d) == nil {
			a.code, a.own = response.StatusCode, response.Header.Get("Location") != ""
		} else if err == nil && response.StatusCode >= http.StatusBadRequest {
			a.code = response.StatusCode // a gateway's own words
		}
	}
	a.end = time.Now()
	if a.problem = d.Code; d.Claim != "" {
		a.claim = d.Claim
	}
	a.state, _ = d.Status.(string)
	a.reason = d.Reason
	for _, sale := range d.Sales {
		if sale.ID == b.sale.ID {
			a.stock = sale.Stock
		}
	}
	b.shop.history.add(a)
	return a, d
}

// until asks until the answer is clear, or ctx ends.
func (b *buyer) until(ctx context.Context, ask func() (answer, document)) (answer, document) {
	for wait := 100 * time.Millisecond; ; wait = min(wait*2, time.Second) {
		a, d := ask()
		if !a.unknown() || ctx.Err() != nil {
			return a, d
		}
		if a.code == http.StatusTooManyRequests {
			wait = time.Second
		}
		b.pause(ctx, wait/2+time.Duration(b.rng.Int64N(int64(wait))))
	}
}

func (b *buyer) pause(ctx context.Context, span time.Duration) {
	timer := time.NewTimer(span)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (b *buyer) over() bool {
	select {
	case <-b.ending:
		return true
	default:
		return false
	}
}

// read looks at the item's page until the ending.
func (b *buyer) read(ctx context.Context) {
	for !b.over() && ctx.Err() == nil {
		b.ask(ctx, answer{kind: askItem}, request{method: http.MethodGet, path: "/items/" + b.sale.SKU})
		b.pause(ctx, 150*time.Millisecond)
	}
}

// claim asks for units under a key until the answer is clear.
func (b *buyer) claim(ctx context.Context, key string, quantity int64) answer {
	a, _ := b.until(ctx, func() (answer, document) {
		return b.ask(ctx, answer{kind: askClaim, key: key, quantity: quantity}, request{
			http.MethodPost, "/sales/" + b.sale.ID + "/claims", fmt.Sprintf(`{"quantity":%d}`, quantity), [2]string{"Idempotency-Key", key},
		})
	})
	return a
}

// status asks once what became of a claim.
func (b *buyer) status(ctx context.Context, claim string, wait int) answer {
	a, _ := b.ask(ctx, answer{kind: askStatus, claim: claim}, request{
		method: http.MethodGet, path: "/sales/" + b.sale.ID + "/claims/" + claim, header: [2]string{"Prefer", fmt.Sprint("wait=", wait)},
	})
	return a
}

// run buys until the ending; ctx bounds the last answers.
func (b *buyer) run(ctx context.Context) {
	for n := 0; !b.over() && ctx.Err() == nil; n++ {
		b.buy(ctx, fmt.Sprintf("%s-%d", b.name, n))
	}
}

// buy makes one purchase and ends it in one of the ways.
func (b *buyer) buy(ctx context.Context, key string) {
	quantity := 1 + b.rng.Int64N(b.sale.Limit)
	a := b.claim(ctx, key, quantity)
	if !a.accepted() {
		b.pause(ctx, 200*time.Millisecond+time.Duration(b.rng.Int64N(int64(500*time.Millisecond))))
		return
	}
	if b.rng.IntN(10) == 0 { // before the order is written, perhaps
		b.cancel(ctx, a.claim)
		return
	}
	defer func() {
		if b.rng.IntN(4) == 0 && a.buyer == b.name {
			b.claim(ctx, key, quantity) // what a client does that lost its memory
		}
	}()
	state := b.settled(ctx, a.claim)
	if state != string(seckill.ClaimOrdered) {
		return
	}
	switch way := b.rng.IntN(100); { // few pay, or the sale would soon be over
	case way < 8:
		b.pay(ctx, a.claim)
	case way < 60:
		b.cancel(ctx, a.claim)
	default:
		b.expire(ctx, a.claim)
	}
}

// settled waits for the claim's result; empty if everything ends first.
func (b *buyer) settled(ctx context.Context, claim string) string {
	for ctx.Err() == nil && !b.over() {
		a := b.status(ctx, claim, 1)
		if a.code == http.StatusOK && a.state != string(seckill.ClaimReserved) {
			return a.state
		}
		b.pause(ctx, 100*time.Millisecond)
	}
	return ""
}

// expire waits until the order is over, looking at it now and then.
func (b *buyer) expire(ctx context.Context, order string) {
	for ctx.Err() == nil && !b.over() {
		a, _ := b.ask(ctx, answer{kind: askOrder, claim: order}, request{method: http.MethodGet, path: "/orders/" + order})
		if a.code == http.StatusOK && a.state != string(seckill.OrderUnpaid) {
			return
		}
		b.pause(ctx, 400*time.Millisecond)
	}
}

func (b *buyer) cancel(ctx context.Context, order string) {
	b.until(ctx, func() (answer, document) {
		return b.ask(ctx, answer{kind: askCancel, claim: order}, request{method: http.MethodPost, path: "/orders/" + order + "/cancel"})
	})
}

// pay starts the payment and pays at the provider's page, whose callback is
// sent again and again. Whether it was in time the order tells.
func (b *buyer) pay(ctx context.Context, order string) {
	a, d := b.until(ctx, func() (answer, document) {
		return b.ask(ctx, answer{kind: askOrder, claim: order}, request{method: http.MethodPost, path: "/orders/" + order + "/payment"})
	})
	if a.code != http.StatusOK {
		return
	}
	page, err := url.Parse(d.PayURL)
	if err != nil {
		return
	}
	a, _ = b.until(ctx, func() (answer, document) {
		return b.ask(ctx, answer{kind: askPay, claim: order}, request{method: http.MethodPost, path: page.Path + "?" + page.RawQuery})
	})
	if a.code != http.StatusOK {
		return
	}
	b.bought++
	b.until(ctx, func() (answer, document) {
		return b.ask(ctx, answer{kind: askOrder, claim: order}, request{method: http.MethodGet, path: "/orders/" + order})
	})
	// Who has paid leaves; somebody else comes in his place.
	b.name = strings.SplitN(b.name, ".", 2)[0] + fmt.Sprintf(".%d", b.bought)
	if token, err := identity.Sign(b.shop.stage.Secret, b.name, 12*time.Hour); err == nil {
		b.token = token
	}
}
