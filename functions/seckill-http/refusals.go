package seckillhttp

import (
	"context"
	"sync"
	"time"

	"seckill/shared/seckill"
)

const (
	// salesMax bounds the sales that are remembered.
	salesMax = 1024
	// learnGap is the least time between two readings of a sale's claimants.
	learnGap = 250 * time.Millisecond
	// notOpenFor is how long "not open" is remembered, and farMin how far the
	// opening must be away then.
	notOpenFor = time.Second
	farMin     = 2 * time.Second
)

// refusals remembers which sales are sold out and who has or had a claim in
// them, and which do not open for a while.
//
// A batch for a sale that is sold out costs one short look at the sale for all
// its claims: if nobody has claimed since and no unit has come back, everyone
// without a claim is refused. For Config.SoldOutFor after a look whoever comes
// is refused by it at once, without Redis and without waiting for others. So a
// refusal is older than its request by that time at most, and a unit that comes
// back is on sale on every replica after it. Whoever has a claim, or had one
// that is over, still gets it when he asks again, by its key, too.
type refusals struct {
	config       Config
	reservations Reservations

	mu    sync.RWMutex
	sales map[string]*memory
	marks map[string]mark
}

// mark is the last claim of a sale that was seen here.
type mark struct{ epoch, seq int64 }

// memory is what is known of one sale.
type memory struct {
	epoch, seq int64
	claims     int64
	claimants  map[string]struct{} // nil until they were read
	reading    bool
	readAt     time.Time
	standing   standing
}

// standing is the decision on everyone but the claimants until an instant.
type standing struct {
	until    time.Time
	decision seckill.Decision
	limit    int64              // a larger quantity is for Redis to refuse; 0 for none
	ticket   seckill.TicketKind // what the sale asks for
}

func newRefusals(config Config, reservations Reservations) *refusals {
	return &refusals{config: config, reservations: reservations, sales: make(map[string]*memory), marks: make(map[string]mark)}
}

// now returns the decision that stands for everyone without a claim.
func (s *refusals) now(sale string, request seckill.ClaimRequest) (seckill.Decision, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m := s.sales[sale]
	if m == nil || m.standing.limit < request.Quantity || !time.Now().Before(m.standing.until) {
		return seckill.Decision{}, false
	}
	_, claimed := m.claimants[request.Buyer]
	return m.standing.on(request), !claimed
}

// on is the decision on one request: who has no ticket is told so first.
func (s standing) on(request seckill.ClaimRequest) seckill.Decision {
	decision := s.decision
	if why := request.Ticket.Barred(s.ticket, decision.Epoch); why != "" {
		decision.Outcome = why
	}
	return decision
}

// older reports whether Redis knows of fewer claims in the sale's epoch than it
// did before: it came back with older data, and what it refuses now it may have
// accepted before. That lasts until the sale is built again.
func (s *refusals) older(sale string, epoch, seq int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, known := s.marks[sale]
	if known && m.epoch == epoch && m.seq > seq {
		return true
	}
	if !known && len(s.marks) >= salesMax {
		forgetOne(s.marks)
	}
	s.marks[sale] = mark{epoch, seq}
	return false
}

// stand has a decision stand until an instant.
func (s *refusals) stand(sale string, known memory, by standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// What was learnt meanwhile counts.
	if m := s.sales[sale]; m != nil && m.epoch == known.epoch && m.seq == known.seq && m.claims == known.claims {
		m.standing = by
	}
}

// refuse answers the attempts of a batch that are sold out for sure, and
// returns the others.
func (s *refusals) refuse(ctx context.Context, sale string, batch []*attempt) []*attempt {
	known := s.recall(sale)
	if known.claimants == nil {
		return batch
	}
	looked := time.Now()
	peek, err := s.reservations.Peek(ctx, sale)
	if err != nil || !peek.Open || peek.Stock > 0 || s.older(sale, peek.Epoch, peek.Seq) {
		return batch
	}
	if peek.Epoch != known.epoch || peek.Seq != known.seq || peek.Claims != known.claims {
		s.outdate(sale)
		return batch
	}
	decision := seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: peek.Epoch, Seq: peek.Seq}
	stands := standing{until: looked.Add(s.config.SoldOutFor), decision: decision, limit: peek.Limit, ticket: peek.Ticket}
	s.stand(sale, known, stands)
	rest := batch[:0]
	for _, a := range batch {
		if _, claimed := known.claimants[a.request.Buyer]; claimed || a.request.Quantity > peek.Limit {
			rest = append(rest, a)
			continue
		}
		a.decision = stands.on(a.request)
		close(a.done)
	}
	return rest
}

// recall returns what is remembered of a sale, whose claimants may be unknown.
func (s *refusals) recall(sale string) memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.sales[sale]; m != nil {
		return *m
	}
	return memory{}
}

// outdate has the claimants of a sale read again.
func (s *refusals) outdate(sale string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.sales[sale]; m != nil {
		m.claimants, m.standing = nil, standing{}
	}
}

// learn notes from decisions whether the sale is sold out, and has its
// claimants read if they are not known as of the last claim; and whether it does
// not open for a while.
func (s *refusals) learn(sale string, decisions []seckill.Decision) {
	last := decisions[len(decisions)-1]
	if last.Epoch == 0 {
		return // not decided on a sale at all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.sales[sale]
	if m != nil && (m.epoch != last.Epoch || m.seq != last.Seq) {
		m.standing = standing{}
	}
	if last.Stock > 0 {
		if m != nil && !m.reading {
			delete(s.sales, sale)
		}
		// Without a claim so far nobody has an answer of his own to get.
		if last.Outcome == seckill.OutcomeNotOpen && last.Seq == 0 && last.RetryIn >= farMin {
			s.remember(sale, &memory{epoch: last.Epoch, standing: standing{until: time.Now().Add(notOpenFor), decision: last, limit: seckill.QuantityMax}})
		}
		return
	}
	if m == nil {
		m = &memory{}
		s.remember(sale, m)
	}
	known := m.claimants != nil && m.epoch == last.Epoch && m.seq >= last.Seq
	if known || m.reading || time.Since(m.readAt) < learnGap {
		return
	}
	m.reading, m.readAt = true, time.Now()
	go s.read(sale, m)
}

// remember keeps what is known of a sale; another goes if there are too many,
// which one is chance.
func (s *refusals) remember(sale string, m *memory) {
	if len(s.sales) >= salesMax {
		forgetOne(s.sales)
	}
	s.sales[sale] = m
}

func forgetOne[T any](sales map[string]T) {
	for sale := range sales {
		delete(sales, sale)
		return
	}
}

// read reads the sale's claimants. While claims go on there is no steady answer;
// the next refusal tries again.
func (s *refusals) read(sale string, m *memory) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DecideTimeout)
	defer cancel()
	claimants, peek, err := s.reservations.Claimants(ctx, sale)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.reading = false
	if err == nil && peek.Stock == 0 {
		m.claimants, m.epoch, m.seq, m.claims = claimants, peek.Epoch, peek.Seq, peek.Claims
		m.standing = standing{}
	}
}
