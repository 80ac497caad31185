package campaign

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// kind is what a buyer asked.
type kind string

const (
	askClaim  kind = "claim"
	askStatus kind = "status"
	askOrder  kind = "order"
	askPay    kind = "pay"
	askCancel kind = "cancel"
	askItem   kind = "item"
)

// answer is one request of a buyer and what he was told.
type answer struct {
	kind     kind
	sale     string
	buyer    string
	key      string // of a claim attempt
	quantity int64  // of a claim attempt
	start    time.Time
	end      time.Time
	code     int    // HTTP status, 0 for no answer
	problem  string // code of the problem
	claim    string // that it is about
	state    string // of the claim or order
	reason   string
	stock    *int64 // that a page shows
	// own: the claim is the one that this key became, not another that the
	// buyer holds.
	own bool
}

// unknown: the buyer must ask again. Only what the documents call so counts.
func (a answer) unknown() bool {
	switch {
	case a.code == 0, a.code >= http.StatusInternalServerError, a.code == http.StatusTooManyRequests:
		return true
	case a.problem == "order_pending":
		return true
	}
	return false
}

// accepted: the buyer was told that this key became a claim.
func (a answer) accepted() bool {
	return a.kind == askClaim && a.own && (a.code == http.StatusAccepted || a.code == http.StatusOK)
}

// history is every answer, in the order of their ends.
type history struct {
	mu      sync.Mutex
	answers []answer
}

func (h *history) add(a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = append(h.answers, a)
}

// of returns the answers about a sale.
func (h *history) of(sale string) []answer {
	h.mu.Lock()
	defer h.mu.Unlock()
	var found []answer
	for _, a := range h.answers {
		if a.sale == sale {
			found = append(found, a)
		}
	}
	return found
}

// lastOf says what the last answers about a sale were.
func (h *history) lastOf(sale string) string {
	answers := h.of(sale)
	var text strings.Builder
	for _, a := range answers[max(len(answers)-8, 0):] {
		_, _ = fmt.Fprintf(&text, "%s %s %s: %d %s %s; ", clock(a.end), a.buyer, a.kind, a.code, a.problem, a.state)
	}
	return text.String()
}

// told returns the claims of a sale that buyers were told they have.
func (h *history) told(sale string) map[string]answer {
	found := map[string]answer{}
	for _, a := range h.of(sale) {
		if a.accepted() {
			if _, ok := found[a.claim]; !ok {
				found[a.claim] = a
			}
		}
	}
	return found
}

// byKey groups the claim attempts by key, in the order of their starts.
func byKey(answers []answer) map[string][]answer {
	keys := map[string][]answer{}
	for _, a := range answers {
		if a.kind == askClaim {
			keys[a.key] = append(keys[a.key], a)
		}
	}
	for _, list := range keys {
		slices.SortFunc(list, func(a, b answer) int { return a.start.Compare(b.start) })
	}
	return keys
}
