package main

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
)

// winner is an accepted claim as its buyer knows it.
type winner struct {
	id    uuid.UUID
	buyer int64
}

// winners are the claims that buyers were told they hold.
type winners struct {
	mu    sync.Mutex
	known map[uuid.UUID]struct{}
	list  []winner
	// watch is sent some of the new ones, and when the buyer was told.
	watch chan told
}

// told is a winner and when he was told.
type told struct {
	winner
	at time.Time
}

// winnersMax bounds what is kept, at about 60 bytes each; more are not looked
// up at the end.
const winnersMax = 2_000_000

func newWinners() *winners {
	return &winners{known: make(map[uuid.UUID]struct{}), watch: make(chan told, 64)}
}

// add notes the claim of a claim's document, once.
func (w *winners) add(document []byte, buyer int64) {
	id, ok := claimOf(document)
	if !ok {
		return
	}
	w.mu.Lock()
	_, known := w.known[id]
	if !known && len(w.list) < winnersMax {
		w.known[id] = struct{}{}
		w.list = append(w.list, winner{id, buyer})
	}
	w.mu.Unlock()
	if known {
		return
	}
	select {
	case w.watch <- told{winner{id, buyer}, time.Now()}:
	default: // enough are watched
	}
}

// random returns one of the last thousand.
func (w *winners) random() (winner, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) == 0 {
		return winner{}, false
	}
	return w.list[len(w.list)-1-rand.IntN(min(len(w.list), 1000))], true
}

// all returns those that are kept; nothing may be added meanwhile.
func (w *winners) all() []winner {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.list
}
