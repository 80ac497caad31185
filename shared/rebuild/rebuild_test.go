package rebuild_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"seckill/shared/audit"
	"seckill/shared/mysqlstore"
	"seckill/shared/natsqueue"
	"seckill/shared/rebuild"
	"seckill/shared/redisstore"
	"seckill/shared/seckill"
	"seckill/shared/testenv"
)

// shop is one sale in real stores.
type shop struct {
	t     *testing.T
	mysql *mysqlstore.Store
	redis *redisstore.Store
	queue *natsqueue.Queue
	raw   *redis.Client
	id    string
}

func newShop(t *testing.T, units, limit int64) *shop {
	t.Helper()
	mysql, err := mysqlstore.Open(mysqlstore.Config{DSN: testenv.MySQL(t), ConnsMax: 4})
	must(t, err)
	must(t, mysql.Migrate(t.Context()))
	addr := testenv.Redis(t)
	store, err := redisstore.Open(redisstore.Config{Addrs: []string{addr}, ConnsMax: 4, Timeout: 2 * time.Second})
	must(t, err)
	queue, err := natsqueue.Open(natsqueue.Config{URL: testenv.NATS(t)})
	must(t, err)
	must(t, queue.EnsureStreams(t.Context()))
	s := &shop{t: t, mysql: mysql, redis: store, queue: queue, raw: redis.NewClient(&redis.Options{Addr: addr}), id: testenv.Name(t)}
	t.Cleanup(func() { _ = queue.Close(); _ = store.Close(); _ = mysql.Close(); _ = s.raw.Close() })
	_, err = mysql.PutItem(t.Context(), seckill.Item{SKU: "tea", Name: "Tea"})
	must(t, err)
	_, err = mysql.PutSale(t.Context(), seckill.Sale{
		ID: s.id, SKU: "tea", PriceMinor: 9900, Currency: "CNY", Units: units, Limit: limit,
		OpensAt: time.Now().Add(-time.Minute), ClosesAt: time.Now().Add(time.Hour), PayWindow: time.Minute,
	})
	must(t, err)
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *shop) bring() (rebuild.Outcome, error) {
	return rebuild.Builder{Records: s.mysql, Reservations: s.redis, Claims: s.queue}.Bring(s.t.Context(), s.id)
}

func (s *shop) wantBring(want rebuild.Outcome) {
	s.t.Helper()
	got, err := s.bring()
	must(s.t, err)
	if got != want {
		s.t.Fatalf("bring: %s, want %s", got, want)
	}
}

// claim lets buyers claim one unit each and returns what was accepted.
func (s *shop) claim(buyers ...string) (accepted []seckill.AcceptedClaim, outcomes []seckill.Outcome) {
	s.t.Helper()
	for _, buyer := range buyers {
		must(s.t, s.raw.Del(s.t.Context(), "seckill:{"+s.id+"}:rate:"+buyer).Err())
		d, err := s.redis.Claim(s.t.Context(), s.id, []seckill.ClaimRequest{{ID: uuid.NewString(), Buyer: buyer, Quantity: 1}})
		must(s.t, err)
		outcomes = append(outcomes, d[0].Outcome)
		if d[0].Accepted != nil {
			accepted = append(accepted, *d[0].Accepted)
		}
	}
	return accepted, outcomes
}

// place writes claims as orders without settling them.
func (s *shop) place(claims []seckill.AcceptedClaim) []seckill.Placement {
	s.t.Helper()
	placed, err := s.mysql.PlaceOrders(s.t.Context(), claims)
	must(s.t, err)
	return placed
}

func (s *shop) settle(placed []seckill.Placement) []seckill.Settled {
	s.t.Helper()
	settlements := make([]seckill.Settlement, len(placed))
	for i, p := range placed {
		settlements[i] = p.Settlement(seckill.AcceptedClaim{})
	}
	answers, err := s.redis.Settle(s.t.Context(), s.id, settlements)
	must(s.t, err)
	return answers
}

// consume takes every claim from the stream, writes and settles it.
func (s *shop) consume() {
	s.t.Helper()
	for {
		deliveries, err := s.queue.Claims().Fetch(s.t.Context(), 100, 200*time.Millisecond)
		must(s.t, err)
		if len(deliveries) == 0 {
			return
		}
		for _, d := range deliveries {
			must(s.t, d.Ack())
		}
	}
}

// atRest checks the laws and that Redis and MySQL agree to the unit.
func (s *shop) atRest(stock int64) {
	s.t.Helper()
	report, err := audit.Sale(s.t.Context(), s.mysql, s.redis, s.id)
	must(s.t, err)
	if !report.Laws.Hold() || !report.AtRest || report.Stock == nil || *report.Stock != stock || report.Available != stock {
		s.t.Fatalf("at rest with stock %d is wanted, audit says %+v", stock, report)
	}
}

func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return out
}

func TestASaleIsBroughtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	s.wantBring(rebuild.Built)
	s.wantBring(rebuild.Fresh)
	claims, _ := s.claim("a", "b")
	s.settle(s.place(claims))
	s.wantBring(rebuild.Fresh)
	s.atRest(3)
}

// However many builders meet, one wins, and the sale is whole afterwards.
func TestBuildersAtOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := s.bring(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	testenv.Eventually(t, 30*time.Second, func() error {
		outcome, err := s.bring()
		if err == nil && outcome != rebuild.Fresh {
			err = errors.New(string(outcome))
		}
		return err
	})
	s.atRest(5)
}

// Redis is emptied with orders in MySQL and claims in the stream: nobody is
// refused as sold out meanwhile, nobody gets two orders, no unit is lost.
func TestRedisLostWithClaimsInFlight(t *testing.T) {
	t.Parallel()
	s := newShop(t, 10, 1)
	s.wantBring(rebuild.Built)
	written, _ := s.claim(names("w", 3)...)
	s.settle(s.place(written))
	flying, _ := s.claim(names("f", 3)...)
	for _, ack := range s.queue.PublishClaims(t.Context(), flying, "0") {
		<-ack.Done()
		must(t, ack.Err())
	}
	s.wipe("sale", "stock", "buyers", "claims", "log")
	_, outcomes := s.claim("new")
	if outcomes[0] != seckill.OutcomeNotLoaded {
		t.Fatalf("outcome %s", outcomes[0])
	}
	s.wantBring(rebuild.Draining)
	_, outcomes = s.claim("new")
	if outcomes[0] != seckill.OutcomeFenced {
		t.Fatalf("outcome %s", outcomes[0])
	}
	s.wantBring(rebuild.Draining) // the claims in flight are not applied yet
	s.settle(s.place(flying))
	s.consume()
	s.wantBring(rebuild.Built)
	s.atRest(4)
	_, outcomes = s.claim(append(names("w", 3), names("f", 3)...)...)
	for _, o := range outcomes {
		if o != seckill.OutcomeHeld {
			t.Fatalf("a buyer who has an order claims again: %v", outcomes)
		}
	}
}

func (s *shop) wipe(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		must(s.t, s.raw.Del(s.t.Context(), "seckill:{"+s.id+"}:"+k).Err())
	}
}

// One key is lost while claims are only in the claim log: they are published
// before the log is dropped.
func TestClaimLogIsPublishedBeforeItIsDropped(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	s.wantBring(rebuild.Built)
	claims, _ := s.claim("a", "b")
	s.wipe("stock")
	s.wantBring(rebuild.Draining)
	deliveries, err := s.queue.Claims().Fetch(t.Context(), 10, 5*time.Second)
	must(t, err)
	if len(deliveries) != 2 {
		t.Fatalf("%d claims were published, want 2", len(deliveries))
	}
	for _, d := range deliveries {
		must(t, d.Ack())
	}
	s.settle(s.place(claims))
	testenv.Eventually(t, 10*time.Second, func() error {
		if outcome, err := s.bring(); err != nil || outcome != rebuild.Built {
			return fmt.Errorf("%s %w", outcome, err)
		}
		return nil
	})
	s.atRest(3)
}

// A replica that lagged was promoted: Redis has forgotten claims that MySQL
// has orders for.
func TestRedisCameBackOlder(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	s.wantBring(rebuild.Built)
	early, _ := s.claim("early")
	s.settle(s.place(early))
	old := s.dump()
	late, _ := s.claim("late")
	s.settle(s.place(late))
	s.restore(old)
	s.wantBring(rebuild.Draining)
	testenv.Eventually(t, 10*time.Second, func() error {
		if outcome, err := s.bring(); err != nil || outcome != rebuild.Built {
			return fmt.Errorf("%s %w", outcome, err)
		}
		return nil
	})
	s.atRest(3)
	_, outcomes := s.claim("early", "late")
	if outcomes[0] != seckill.OutcomeHeld || outcomes[1] != seckill.OutcomeHeld {
		t.Fatalf("outcomes %v", outcomes)
	}
}

// Redis came back older and was overtaken by new claims before anybody looked:
// the count of claims tells, however far the sequence has gone on.
func TestRedisCameBackOlderAndWasOvertaken(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, 1)
	s.wantBring(rebuild.Built)
	early, _ := s.claim(names("e", 2)...)
	s.settle(s.place(early))
	old := s.dump()
	lost, _ := s.claim(names("l", 5)...)
	s.settle(s.place(lost))
	s.restore(old)
	after, _ := s.claim(names("a", 9)...) // 2 + 9 claims: more than MySQL has seen
	s.settle(s.place(after))
	s.wantBring(rebuild.Draining)
	testenv.Eventually(t, 30*time.Second, func() error {
		if outcome, err := s.bring(); err != nil || outcome != rebuild.Built {
			return fmt.Errorf("%s %w", outcome, err)
		}
		return nil
	})
	s.atRest(4)
	_, outcomes := s.claim(names("l", 5)...)
	for _, o := range outcomes {
		if o != seckill.OutcomeHeld {
			t.Fatalf("a buyer who has an order claims again: %v", outcomes)
		}
	}
}

// A claim that was cancelled before its order was written counts like any
// other: it makes no room for Redis to forget one unnoticed.
func TestCancelledClaimHidesNoLoss(t *testing.T) {
	t.Parallel()
	s := newShop(t, 20, 1)
	s.wantBring(rebuild.Built)
	early, _ := s.claim("early")
	s.settle(s.place(early))
	cancelled, _ := s.claim("cancelled")
	order, _, err := s.mysql.CancelUnwritten(t.Context(), cancelled[0])
	must(t, err)
	_, err = s.redis.Restock(t.Context(), s.id, []seckill.Return{order.Return()})
	must(t, err)
	old := s.dump()
	lost, _ := s.claim("lost")
	s.settle(s.place(lost))
	s.restore(old)
	s.wantBring(rebuild.Draining)
}

// Who looked before another build ended does not fence what was built.
func TestALateLookDoesNotFenceANewBuild(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	s.wantBring(rebuild.Built)
	s.wipe("stock")
	s.wantBring(rebuild.Draining)
	testenv.Eventually(t, 30*time.Second, func() error {
		if outcome, err := s.bring(); err != nil || outcome != rebuild.Built {
			return fmt.Errorf("%s %w", outcome, err)
		}
		return nil
	})
	for name, err := range map[string]error{
		"fence": s.redis.Fence(t.Context(), s.id, 1), "note": s.redis.NoteDrain(t.Context(), s.id, 1, 7), "note of this epoch": s.redis.NoteDrain(t.Context(), s.id, 2, 7),
	} {
		if !errors.Is(err, seckill.ErrSuperseded) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.wantBring(rebuild.Fresh)
	s.atRest(5)
}

// A sale that was changed after it was listed is built as it is now.
func TestAChangedSaleIsBuiltAsItIs(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	listed, err := s.mysql.Sale(t.Context(), s.id)
	must(t, err)
	changed := listed
	changed.Limit = 3
	_, err = s.mysql.PutSale(t.Context(), changed)
	must(t, err)
	if err := s.mysql.NextEpoch(t.Context(), listed, 1); !errors.Is(err, seckill.ErrSuperseded) {
		t.Fatalf("an old list must not build: %v", err)
	}
	s.wantBring(rebuild.Built)
	claims, _ := s.claim("a")
	if claims[0].Limit != 3 {
		t.Fatalf("claim %+v", claims[0])
	}
}

// An event of a sale that Redis does not hold is settled for good: whoever
// builds the sale reads its order.
func TestSettleOfASaleThatIsGone(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	s.wantBring(rebuild.Built)
	claims, _ := s.claim("a")
	s.wipe("sale", "stock", "buyers", "claims", "log")
	for _, answer := range s.settle(s.place(claims)) {
		if answer != seckill.SettledGone {
			t.Fatalf("settled: %s", answer)
		}
	}
	testenv.Eventually(t, 30*time.Second, func() error {
		if outcome, err := s.bring(); err != nil || outcome != rebuild.Built {
			return fmt.Errorf("%s %w", outcome, err)
		}
		return nil
	})
	s.atRest(4)
}

var saleKeys = []string{"sale", "stock", "buyers", "claims", "log"}

func (s *shop) dump() map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, k := range saleKeys {
		value, err := s.raw.Dump(s.t.Context(), "seckill:{"+s.id+"}:"+k).Result()
		must(s.t, err)
		out[k] = value
	}
	return out
}

func (s *shop) restore(dump map[string]string) {
	s.t.Helper()
	for k, value := range dump {
		must(s.t, s.raw.RestoreReplace(s.t.Context(), "seckill:{"+s.id+"}:"+k, time.Hour, value).Err())
	}
}

// At rest Redis says another number than MySQL, and both add up.
func TestDriftAtRestIsRepaired(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 2)
	s.wantBring(rebuild.Built)
	claims, _ := s.claim("a")
	s.settle(s.place(claims))
	ghost, _ := s.claim("ghost") // Redis believes in a claim that nobody knows
	settlement := seckill.Settlement{Claim: ghost[0].Claim, Buyer: "ghost", Quantity: 1, Status: seckill.ClaimOrdered}
	_, err := s.redis.Settle(t.Context(), s.id, []seckill.Settlement{settlement})
	must(t, err)
	s.wantBring(rebuild.Draining)
	testenv.Eventually(t, 10*time.Second, func() error {
		if outcome, err := s.bring(); err != nil || outcome != rebuild.Built {
			return fmt.Errorf("%s %w", outcome, err)
		}
		return nil
	})
	s.atRest(4)
}

// Work under way is no drift: an unsettled claim, a return that waits.
func TestWorkUnderWayIsNoDrift(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	s.wantBring(rebuild.Built)
	claims, _ := s.claim("a", "b")
	placed := s.place(claims)
	s.wantBring(rebuild.Fresh)
	s.settle(placed)
	_, row, err := s.mysql.Cancel(t.Context(), claims[0].Claim, "a")
	must(t, err)
	s.wantBring(rebuild.Fresh)
	_, err = s.redis.Restock(t.Context(), s.id, row.Returns)
	must(t, err)
	must(t, s.mysql.OutboxReturned(t.Context(), row.ID))
	s.wantBring(rebuild.Fresh)
	s.atRest(4)
}

// The price and the units change during the sale; what is held stays.
func TestChangedSaleIsAmended(t *testing.T) {
	t.Parallel()
	s := newShop(t, 2, 1)
	s.wantBring(rebuild.Built)
	claims, _ := s.claim("a", "b")
	s.settle(s.place(claims))
	sale, err := s.mysql.Sale(t.Context(), s.id)
	must(t, err)
	sale.Units, sale.PriceMinor = 3, 12900
	_, err = s.mysql.PutSale(t.Context(), sale)
	must(t, err)
	s.wantBring(rebuild.Amended)
	s.wantBring(rebuild.Fresh)
	s.atRest(1)
	more, _ := s.claim("c")
	if len(more) != 1 || more[0].PriceMinor != 12900 {
		t.Fatalf("accepted %+v", more)
	}
}

// While the broker is away nothing is built: its claims would come too late.
func TestNothingIsBuiltWithoutTheBroker(t *testing.T) {
	t.Parallel()
	s := newShop(t, 5, 1)
	s.wantBring(rebuild.Built)
	s.wipe("stock")
	down := rebuild.Builder{Records: s.mysql, Reservations: s.redis, Claims: away{errors.New("no broker")}}
	for range 2 {
		if outcome, err := down.Bring(t.Context(), s.id); err == nil || outcome == rebuild.Built {
			t.Fatalf("bring: %s %v", outcome, err)
		}
	}
	_, outcomes := s.claim("a")
	if outcomes[0] != seckill.OutcomeFenced {
		t.Fatalf("outcome %s", outcomes[0])
	}
}

// away is a broker that cannot be reached.
type away struct{ err error }

func (a away) PublishClaims(context.Context, []seckill.AcceptedClaim, string) []rebuild.Ack {
	return nil
}
func (a away) ClaimsHead(context.Context) (uint64, error)          { return 0, a.err }
func (a away) ClaimsApplied(context.Context, uint64) (bool, error) { return false, a.err }
