package redisstore_test

import (
	"errors"
	"slices"
	"testing"

	"seckill/shared/seckill"
)

// Claims of several sales are read at once; what cannot be read keeps nothing
// else away.
func TestClaimsOfManySales(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w world) {
		one, two := w.opened(t, 600, 1), saleFor(t, 3, 1)
		two.ID += "-two"
		w.build(t, two, 3, nil)
		var ids []string
		for batch := range slices.Chunk(buyers(600), 300) { // more than one command reads
			requests := make([]seckill.ClaimRequest, len(batch))
			for i, buyer := range batch {
				requests[i] = request(buyer, 1)
				ids = append(ids, requests[i].ID)
			}
			_, err := w.Claim(t.Context(), one.ID, requests)
			must(t, err)
		}
		other := w.claim(t, two.ID, request("x", 1))
		wanted := map[string][]string{one.ID: append(ids, newID()), two.ID: {other.Claim.ID}, "unheard-of": {newID()}}
		got, err := w.ClaimsOfMany(t.Context(), wanted)
		must(t, err)
		if len(got[one.ID]) != 600 || len(got[two.ID]) != 1 || got[two.ID][0] != other.Claim || len(got) != 2 {
			t.Fatalf("%d and %+v of %d sales", len(got[one.ID]), got[two.ID], len(got))
		}
		must(t, w.raw.HSet(t.Context(), w.key(one.ID, "claims"), ids[0], "nonsense").Err())
		must(t, w.raw.Del(t.Context(), w.key(two.ID, "claims")).Err())
		must(t, w.raw.Set(t.Context(), w.key(two.ID, "claims"), "x", 0).Err())
		got, err = w.ClaimsOfMany(t.Context(), wanted)
		if len(got[one.ID]) != 599 || !errors.Is(err, seckill.ErrUnavailable) {
			t.Errorf("%d beside what is spoiled, %v", len(got[one.ID]), err)
		}
		if got, err := w.ClaimsOfMany(t.Context(), nil); len(got) != 0 || err != nil {
			t.Errorf("of nothing: %v, %v", got, err)
		}
	})
}
