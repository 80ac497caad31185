package seckillhttp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	seckillhttp "seckill/functions/seckill-http"
	"seckill/shared/identity"
	"seckill/shared/seckill"
	"seckill/shared/serve"
)

const benchSecret = "only-a-benchmark-knows-this-secret-0123456789"

// BenchmarkClaim is the function's own cost of a claim, stores aside: token,
// body, batch and answer, by as many callers as a busy server has.
func BenchmarkClaim(b *testing.B) {
	soldOut := seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: 1, Seq: 5}
	for name, redis := range map[string]*fakeRedis{
		"accepted": {claim: reserve},
		"sold out": {claim: decideAll(soldOut), peek: seckill.SalePeek{Open: true, Epoch: 1, Seq: 5, Limit: 1}, claimants: map[string]struct{}{}},
	} {
		b.Run(name, func(b *testing.B) {
			buyers, err := identity.New(b.Context(), identity.Config{HMACSecret: benchSecret})
			if err != nil {
				b.Fatal(err)
			}
			tokens := make([]string, 1000)
			for i := range tokens {
				if tokens[i], err = identity.Sign(benchSecret, fmt.Sprint("b", i), time.Hour); err != nil {
					b.Fatal(err)
				}
			}
			h := serve.Handler(serve.Config{InFlightMax: 10_000}, seckillhttp.New(testConfig(), redis, &forgetfulBroker{}, buyers))
			var next atomic.Uint64
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, claimsPath, strings.NewReader(`{"quantity":1}`))
					r.Header["Content-Type"] = []string{"application/json"}
					r.Header["Authorization"] = []string{"Bearer " + tokens[next.Add(1)%1000]}
					h.ServeHTTP(&discard{header: http.Header{}}, r)
				}
			})
		})
	}
}

// forgetfulBroker acknowledges claims at once.
type forgetfulBroker struct{ fakeBroker }

// discard is a response that nobody reads.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }
func (d *discard) WriteHeader(int)             {}
