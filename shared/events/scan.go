package events

import (
	"strconv"
	"strings"
	"time"

	"seckill/shared/seckill"
)

// scanner reads events that look exactly as AppendClaim writes them, which is
// nearly all that ever comes, at a tenth of what reading any JSON costs. It
// understands nothing else: at the first byte that differs it fails, and the
// event is read in the general way. So it accepts nothing that the general way
// would not, and reads nothing otherwise.
type scanner struct {
	body   []byte
	text   string // the same; a string, so that its parts need no copy
	at     int
	failed bool
}

func newScanner(body []byte) *scanner { return &scanner{body: body, text: string(body)} }

// claim reads one event; false if it is not in our own form.
func (s *scanner) claim() (Event, bool) {
	s.literal(`{"specversion":"1.0","id":"`)
	id := s.plain()
	s.literal(`,"source":"` + SourceClaims + `","type":"` + string(seckill.EventClaimAccepted) + `","subject":"`)
	subject := s.plain()
	s.literal(`,"time":"`)
	at := s.plain()
	s.literal(`,"datacontenttype":"application/json","partitionkey":"`)
	e := Event{
		ID: id, Source: SourceClaims, Type: string(seckill.EventClaimAccepted), Subject: subject,
		PartitionKey: s.plain(), DataType: "application/json",
	}
	if s.has(`,"traceparent":"`) {
		e.TraceParent = s.plain()
	}
	s.literal(`,"data":`)
	from := s.at
	e.claim = s.data(at)
	to := s.at
	s.literal(`}`)
	if s.failed || blank(id) {
		return Event{}, false
	}
	e.Data, e.scanned = s.body[from:to:to], true
	return e, true
}

// data reads what appendClaimData writes; at is the event's own time, which is
// the claim's.
func (s *scanner) data(at string) (c seckill.AcceptedClaim) {
	s.literal(`{"claim":"`)
	c.Claim = s.plain()
	s.literal(`,"sale":"`)
	c.Sale = s.plain()
	s.literal(`,"sku":"`)
	c.SKU = s.plain()
	s.literal(`,"buyer":"`)
	c.Buyer = s.plain()
	s.literal(`,"quantity":`)
	c.Quantity = s.integer()
	s.literal(`,"price_minor":`)
	c.PriceMinor = s.integer()
	s.literal(`,"currency":"`)
	c.Currency = s.plain()
	s.literal(`,"pay_window_ms":`)
	c.PayWindowMS = s.integer()
	s.literal(`,"limit":`)
	c.Limit = s.integer()
	s.literal(`,"epoch":`)
	c.Epoch = s.integer()
	s.literal(`,"seq":`)
	c.Seq = s.integer()
	s.literal(`,"accepted_at":"`)
	s.failed = s.plain() != at || s.failed
	s.literal(`}`)
	accepted, ok := instant(at)
	s.failed = !ok || s.failed
	c.AcceptedAt = accepted
	return c
}

// instant reads a time as appendTime writes it, and only so: time.Parse takes
// more than RFC 3339 allows.
func instant(text string) (time.Time, bool) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, false
	}
	var usual [len(time.RFC3339Nano)]byte
	return t, string(t.UTC().AppendFormat(usual[:0], time.RFC3339Nano)) == text
}

// has steps over a literal if it is there.
func (s *scanner) has(literal string) bool {
	found := strings.HasPrefix(s.text[s.at:], literal)
	if found {
		s.at += len(literal)
	}
	return found
}

func (s *scanner) literal(literal string) { s.failed = !s.has(literal) || s.failed }

// plain reads the rest of a JSON string that needs no unquoting, and its end.
func (s *scanner) plain() string {
	for i := s.at; i < len(s.text); i++ {
		switch b := s.text[i]; {
		case b == '"':
			found := s.text[s.at:i]
			s.at = i + 1
			return found
		case b < ' ' || b > '~' || b == '\\':
			s.failed = true
			return ""
		}
	}
	s.failed = true
	return ""
}

// digitsMax keeps an integer within 64 bits.
const digitsMax = 18

// integer reads a JSON number without sign, fraction or exponent.
func (s *scanner) integer() int64 {
	to := s.at
	for to < len(s.text) && s.text[to] >= '0' && s.text[to] <= '9' && to-s.at <= digitsMax {
		to++
	}
	digits := s.text[s.at:to]
	if digits == "" || len(digits) > digitsMax || len(digits) > 1 && digits[0] == '0' {
		s.failed = true
		return 0
	}
	s.at = to
	n, err := strconv.ParseInt(digits, 10, 64)
	s.failed = s.failed || err != nil
	return n
}

// scanBatch reads a batch whose events are all in our own form, without any
// space between them; false if one is not.
func scanBatch(body []byte) ([]Event, bool) {
	batch := make([]Event, 0, min(len(body)/512+1, BatchMax))
	ok := scanEach(body, func(e Event, _ []byte) { batch = append(batch, e) })
	return batch, ok
}

// scanParts cuts such a batch.
func scanParts(body []byte) ([]Part, bool) {
	parts := make([]Part, 0, min(len(body)/512+1, BatchMax))
	ok := scanEach(body, func(e Event, raw []byte) { parts = append(parts, Part{ID: e.ID, Payload: raw}) })
	return parts, ok
}

func scanEach(body []byte, do func(e Event, raw []byte)) bool {
	s := newScanner(body)
	if !s.has("[") {
		return false
	}
	for n := 0; n < BatchMax; n++ {
		from := s.at
		e, ok := s.claim()
		if !ok {
			return false
		}
		do(e, body[from:s.at:s.at])
		if !s.has(",") {
			return s.text[s.at:] == "]"
		}
	}
	return false
}
