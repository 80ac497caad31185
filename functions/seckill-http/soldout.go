package seckillhttp

import (
	"context"
	"sync"
	"time"

	"seckill/shared/seckill"
)

const (
	// salesMax bounds the sales that are remembered as sold out.
	salesMax = 1024
	// learnGap is the least time between two readings of a sale's holders.
	learnGap = 250 * time.Millisecond
)

// soldOut remembers which sales are sold out and who holds their units. A
// batch for such a sale costs one short look at the sale for all its claims:
// if nobody has claimed since and no unit has come back, everyone who holds
// nothing is refused. The look is part of each refusal, so a refusal is never
// older than the request, a unit that comes back is sold at once on every
// replica, and a holder who asks again still gets his claim.
type soldOut struct {
	config       Config
	reservations Reservations

	mu    sync.Mutex
	sales map[string]*memory
}

// memory is what is known of one sale.
type memory struct {
	epoch, seq int64
	held       int64
	holders    map[string]struct{} // nil until they were read
	reading    bool
	readAt     time.Time
}

func newSoldOut(config Config, reservations Reservations) *soldOut {
	return &soldOut{config: config, reservations: reservations, sales: make(map[string]*memory)}
}

// refuse answers the attempts of a batch that are sold out for sure, and
// returns the others.
func (s *soldOut) refuse(ctx context.Context, sale string, batch []*attempt) []*attempt {
	known := s.recall(sale)
	if known.holders == nil {
		return batch
	}
	peek, err := s.reservations.Peek(ctx, sale)
	if err != nil || !peek.Open || peek.Stock > 0 || peek.Epoch != known.epoch || peek.Seq != known.seq || peek.Held != known.held {
		return batch
	}
	rest := batch[:0]
	for _, a := range batch {
		if _, holds := known.holders[a.request.Buyer]; holds || a.request.Quantity > peek.Limit {
			rest = append(rest, a)
			continue
		}
		a.decision = seckill.Decision{Outcome: seckill.OutcomeSoldOut, Epoch: peek.Epoch, Seq: peek.Seq}
		close(a.done)
	}
	return rest
}

// recall returns what is remembered of a sale; nothing if it has no holders.
func (s *soldOut) recall(sale string) memory {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.sales[sale]; m != nil {
		return *m
	}
	return memory{}
}

// learn notes from decisions whether the sale is sold out, and has its
// holders read if they are not known as of the last claim.
func (s *soldOut) learn(sale string, decisions []seckill.Decision) {
	last := decisions[len(decisions)-1]
	if last.Epoch == 0 {
		return // not decided on a sale at all
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.sales[sale]
	if last.Stock > 0 {
		if m != nil && !m.reading {
			delete(s.sales, sale)
		}
		return
	}
	if m == nil {
		if len(s.sales) >= salesMax {
			s.forgetOne()
		}
		m = &memory{}
		s.sales[sale] = m
	}
	known := m.holders != nil && m.epoch == last.Epoch && m.seq >= last.Seq
	if known || m.reading || time.Since(m.readAt) < learnGap {
		return
	}
	m.reading, m.readAt = true, time.Now()
	go s.read(sale, m)
}

// forgetOne makes room for another sale; which one goes is chance.
func (s *soldOut) forgetOne() {
	for sale := range s.sales {
		delete(s.sales, sale)
		return
	}
}

// read reads the sale's holders. While claims go on there is no steady answer;
// the next refusal tries again.
func (s *soldOut) read(sale string, m *memory) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.DecideTimeout)
	defer cancel()
	holders, peek, err := s.reservations.Holders(ctx, sale)
	s.mu.Lock()
	defer s.mu.Unlock()
	m.reading = false
	if err == nil && peek.Stock == 0 {
		m.holders, m.epoch, m.seq, m.held = holders, peek.Epoch, peek.Seq, peek.Held
	}
}
