package campaign

import (
	"net/http"
	"slices"
	"time"
)

// oneKeyOneClaim: whatever happens, a key becomes one claim or none, what was
// accepted is never refused later, and every key gets a clear answer.
func (r *record) oneKeyOneClaim() {
	for key, attempts := range byKey(r.answers) {
		var first *answer
		for i, a := range attempts {
			switch {
			case !a.accepted():
			case first == nil:
				first = &attempts[i]
			case a.claim != first.claim:
				r.violate("one key, one claim", "key %s became claim %s at %s and claim %s at %s", key, first.claim, clock(first.end), a.claim, clock(a.end))
			}
		}
		for _, a := range attempts {
			if first != nil && !a.unknown() && !a.accepted() && a.start.After(first.end) {
				r.violate("unknown is not no", "key %s was claim %s at %s and was told %d %s at %s", key, first.claim, clock(first.end), a.code, a.problem, clock(a.end))
			}
		}
		if last := attempts[len(attempts)-1]; last.unknown() {
			r.violate("self-healing", "key %s got no clear answer; the last is %d %s at %s", key, last.code, last.problem, clock(last.end))
		}
	}
}

// holding is the longest time for which a claim can have held its units.
type holding struct {
	span

	quantity int64
}

// forever ends the holding of units that were not seen to come back.
var forever = time.Unix(1<<40, 0)

// holdings are those of every claim that may have been: of all orders, and of
// attempts that were neither confirmed nor refused and that Redis then lost.
func (r *record) holdings() []holding {
	var held []holding
	starts := map[string]time.Time{}
	for _, attempts := range byKey(r.answers) {
		became := ""
		for _, a := range attempts {
			if a.accepted() {
				became = a.claim
			}
		}
		_, written := r.orders[became]
		switch {
		case written:
			starts[became] = attempts[0].start
		case became != "": // lost, but its units are held
			held = append(held, holding{span{attempts[0].start, forever}, attempts[0].quantity})
		default:
			held = append(held, r.phantoms(attempts)...)
		}
	}
	for id, o := range r.orders {
		h := holding{span{o.AcceptedAt.Add(-clockSlack), forever}, o.Quantity}
		if start, ok := starts[id]; ok && start.Before(h.from) {
			h.from = start
		}
		if at, ok := r.returned(id); ok {
			h.to = at
		}
		held = append(held, h)
	}
	return held
}

// phantoms: an unknown attempt may have held units that Redis lost, until the
// same key was refused.
func (r *record) phantoms(attempts []answer) []holding {
	var held []holding
	for i, a := range attempts {
		if !a.unknown() {
			continue
		}
		h := holding{span{a.start, forever}, a.quantity}
		for _, later := range attempts[i+1:] {
			if !later.unknown() {
				h.to = later.end
				break
			}
		}
		held = append(held, h)
	}
	return held
}

// soldOutIsTrue: at some moment of each request that was refused as sold out,
// so many units can have been held that too few were left.
func (r *record) soldOutIsTrue() {
	held := r.holdings()
	slices.SortFunc(held, func(a, b holding) int { return a.from.Compare(b.from) })
	for _, a := range r.answers {
		if a.kind != askClaim || a.code != http.StatusConflict || a.problem != "sold_out" || r.distrusts(a) {
			continue
		}
		if most := mostHeld(held, a.start, a.end); r.offer.sale.Units-most >= a.quantity {
			r.violate("every unit sellable", "%s was told sold_out for %d units between %s and %s, when at most %d of %d were held",
				a.buyer, a.quantity, clock(a.start), clock(a.end), most, r.offer.sale.Units)
		}
	}
}

func (r *record) distrusts(a answer) bool {
	return slices.ContainsFunc(r.offer.distrusted, func(s span) bool { return s.overlaps(a.start, a.end) })
}

// mostHeld is the greatest number of units held at one moment of a time.
func mostHeld(held []holding, from, to time.Time) int64 {
	type change struct {
		at    time.Time
		units int64
	}
	var changes []change
	for _, h := range held {
		if !h.overlaps(from, to) {
			continue
		}
		changes = append(changes, change{h.from, h.quantity}, change{h.to, -h.quantity})
	}
	// At one instant what begins is counted before what ends.
	slices.SortFunc(changes, func(a, b change) int {
		if !a.at.Equal(b.at) {
			return a.at.Compare(b.at)
		}
		return int(b.units - a.units)
	})
	var now, most int64
	for _, c := range changes {
		now += c.units
		if c.at.Before(from) {
			continue
		}
		if c.at.After(to) {
			break
		}
		most = max(most, now)
	}
	return max(most, heldAt(held, from))
}

func heldAt(held []holding, at time.Time) (units int64) {
	for _, h := range held {
		if !h.from.After(at) && !h.to.Before(at) {
			units += h.quantity
		}
	}
	return units
}
