package seckillhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/serve"
)

// getClaim answers GET /sales/{sale}/claims/{claim}: at once, after waiting
// for the result ("Prefer: wait=N"), or as a stream that ends with it
// ("Accept: text/event-stream").
func (h *Handler) getClaim(w http.ResponseWriter, r *http.Request) {
	buyer, err := h.buyers.Buyer(r)
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	sale, id := r.PathValue("sale"), r.PathValue("claim")
	claim, err := h.ownClaim(r.Context(), sale, id, buyer)
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	if strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		h.streamClaim(w, r, claim)
		return
	}
	if wait := h.preferredWait(r); wait > 0 && claim.Status == seckill.ClaimReserved {
		serve.Release(w)
		claim = h.results.await(r.Context(), serve.Draining(w), claim, wait)
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait/time.Second)))
	}
	writeClaim(w, http.StatusOK, claim)
}

// ownClaim reads a claim of this buyer. Another's claim is not found, and a
// claim that Redis may have lost is not "not found".
func (h *Handler) ownClaim(ctx context.Context, sale, id, buyer string) (seckill.Claim, error) {
	if !seckill.ValidSlug(sale) || !seckill.ValidClaimID(id) {
		return seckill.Claim{}, fmt.Errorf("claim: %w", seckill.ErrNotFound)
	}
	ctx, cancel := context.WithTimeout(ctx, h.config.DecideTimeout)
	defer cancel()
	claims, err := h.reservations.ClaimsOf(ctx, sale, []string{id})
	if err != nil {
		return seckill.Claim{}, err
	}
	if claims[0].ID != "" && claims[0].Buyer == buyer {
		return claims[0], nil
	}
	readable, err := h.reservations.Readable(ctx, sale)
	if err != nil {
		return seckill.Claim{}, err
	}
	if !readable && claims[0].ID == "" {
		return seckill.Claim{}, h.notLoaded(ctx, sale)
	}
	return seckill.Claim{}, fmt.Errorf("claim %s: %w", id, seckill.ErrNotFound)
}

// preferredWait reads "Prefer: wait=N" (RFC 7240), bounded by the config.
func (h *Handler) preferredWait(r *http.Request) time.Duration {
	for _, line := range r.Header.Values("Prefer") {
		for preference := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
			if !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			seconds, err := strconv.Atoi(strings.TrimSpace(value))
			if err == nil && seconds > 0 {
				return min(time.Duration(seconds)*time.Second, h.config.WaitMax)
			}
		}
	}
	return 0
}

// streamClaim sends the claim as it is, then its result, as server-sent
// events named "claim", and ends. Without a result within WaitMax it ends,
// too: an EventSource connects again by itself.
func (h *Handler) streamClaim(w http.ResponseWriter, r *http.Request, claim seckill.Claim) {
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(time.Now().Add(h.config.WaitMax + 10*time.Second)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		problem.Write(w, problem.Of(err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	send := func(c seckill.Claim) bool {
		b := append([]byte("retry: 1000\nevent: claim\ndata: "), appendClaim(nil, c)...)
		_, err := w.Write(append(b, '\n'))
		return err == nil && control.Flush() == nil
	}
	if !send(claim) || claim.Status != seckill.ClaimReserved {
		return
	}
	serve.Release(w)
	if settled := h.results.await(r.Context(), serve.Draining(w), claim, h.config.WaitMax); settled.Status != seckill.ClaimReserved {
		send(settled)
	}
}
