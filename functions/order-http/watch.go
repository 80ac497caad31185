package orderhttp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"seckill/shared/seckill"
	"seckill/shared/serve"
)

const (
	// watchTick is how often the orders that somebody watches are looked at,
	// all of them in one read.
	watchTick = 250 * time.Millisecond
	// watchReadMax bounds the orders of one read.
	watchReadMax = 500
	// watchersMax bounds the watchers of this process; more are answered once.
	watchersMax = 10_000
	// watchMax bounds how long one stream goes on; an EventSource connects
	// again by itself.
	watchMax     = 30 * time.Second
	watchTimeout = 2 * time.Second
)

// watches lets readers wait for what becomes of orders.
type watches struct {
	orders Orders

	mu       sync.Mutex
	watchers map[string][]chan seckill.OrderState // by order
	count    int
	// looking is true while the goroutine of look runs.
	looking bool
}

func newWatches(orders Orders) *watches {
	return &watches{orders: orders, watchers: map[string][]chan seckill.OrderState{}}
}

// join returns a channel of the order's newest state; ok is false when too
// many watch already.
func (s *watches) join(order string) (states chan seckill.OrderState, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= watchersMax {
		return nil, false
	}
	states = make(chan seckill.OrderState, 1)
	s.count++
	s.watchers[order] = append(s.watchers[order], states)
	if !s.looking {
		s.looking = true
		go s.look()
	}
	return states, true
}

func (s *watches) leave(order string, states chan seckill.OrderState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count--
	var kept []chan seckill.OrderState
	for _, c := range s.watchers[order] {
		if c != states {
			kept = append(kept, c)
		}
	}
	if s.watchers[order] = kept; len(kept) == 0 {
		delete(s.watchers, order)
	}
}

// look reads the states of watched orders until nobody watches. A failed read
// tells nobody anything; the next tick reads again.
func (s *watches) look() {
	ticker := time.NewTicker(watchTick)
	defer ticker.Stop()
	for range ticker.C {
		s.mu.Lock()
		if s.count == 0 {
			s.looking = false
			s.mu.Unlock()
			return
		}
		ids := make([]string, 0, len(s.watchers))
		for id := range s.watchers {
			ids = append(ids, id)
		}
		s.mu.Unlock()
		for len(ids) > 0 {
			n := min(len(ids), watchReadMax)
			s.tell(ids[:n])
			ids = ids[n:]
		}
	}
}

func (s *watches) tell(ids []string) {
	ctx, cancel := context.WithTimeout(context.Background(), watchTimeout)
	defer cancel()
	states, err := s.orders.OrderStates(ctx, ids)
	if err != nil {
		slog.Warn("watched orders not read", "orders", len(ids), "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, state := range states {
		for _, c := range s.watchers[id] {
			select { // only the newest state counts
			case <-c:
			default:
			}
			c <- state
		}
	}
}

// stream sends the order's document, and again whenever what it says changes,
// as server-sent events named "order", until the reader leaves, the server is
// about to stop, or watchMax has passed.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, document orderJSON) {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(watchMax + 10*time.Second)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if !sendOrder(w, control, document) {
		return
	}
	states, ok := h.watches.join(document.ID) //nolint:contextcheck // one look serves all watchers
	if !ok {
		return
	}
	defer h.watches.leave(document.ID, states)
	serve.Release(w)
	ctx, cancel := context.WithTimeout(r.Context(), watchMax)
	defer cancel()
	for {
		select {
		case state := <-states:
			if document.shows(state) {
				continue
			}
			if document, ok = h.again(ctx, document); !ok || !sendOrder(w, control, document) {
				return
			}
		case <-ctx.Done():
			return
		case <-serve.Draining(w):
			return
		}
	}
}

// shows reports whether the document says what the order's state is.
func (d orderJSON) shows(state seckill.OrderState) bool {
	refund := seckill.RefundStatus("")
	switch {
	case state.RefundsDue > 0:
		refund = seckill.RefundDue
	case state.RefundsDone > 0:
		refund = seckill.RefundDone
	}
	shown := seckill.RefundStatus("")
	if d.Refund != nil {
		shown = d.Refund.Status
	}
	return d.Status == state.Status && shown == refund
}

// again reads a document anew; ok is false if it cannot be had.
func (h *Handler) again(ctx context.Context, d orderJSON) (orderJSON, bool) {
	order, err := h.written(ctx, d.ID, d.Buyer)
	if err == nil {
		d, err = h.document(ctx, order)
	}
	if err != nil {
		slog.WarnContext(ctx, "watched order not read", "order", d.ID, "err", err)
	}
	return d, err == nil
}

// sendOrder writes one event; false if the reader is gone.
func sendOrder(w http.ResponseWriter, control *http.ResponseController, document orderJSON) bool {
	text, err := json.Marshal(document)
	if err != nil {
		return false
	}
	event := append([]byte("retry: 1000\nevent: order\ndata: "), text...)
	_, err = w.Write(append(event, '\n', '\n'))
	return err == nil && control.Flush() == nil
}
