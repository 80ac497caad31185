package seckillhttp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"

	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/strictjson"
	"seckill/shared/ticket"
)

// bodyMax bounds a claim's body in bytes; {"quantity":100} has 16.
const bodyMax = 1024

// postClaim answers POST /sales/{sale}/claims.
func (h *Handler) postClaim(w http.ResponseWriter, r *http.Request) {
	sale := r.PathValue("sale")
	request, err := h.readClaim(w, r, sale)
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	decision, err := h.batches.claim(r.Context(), sale, request)
	if err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	if decision.Outcome == seckill.OutcomeNotLoaded {
		err = h.notLoaded(r.Context(), sale)
		problem.Write(w, problem.Of(err))
		return
	}
	writeDecision(w, decision)
}

// readClaim returns the attempt that a request makes, or why it is none.
func (h *Handler) readClaim(w http.ResponseWriter, r *http.Request, sale string) (seckill.ClaimRequest, error) {
	buyer, err := h.buyers.Buyer(r)
	if err != nil {
		return seckill.ClaimRequest{}, err
	}
	if !seckill.ValidSlug(sale) {
		return seckill.ClaimRequest{}, fmt.Errorf("sale: %w", seckill.ErrNotFound)
	}
	key, err := idempotencyKey(r)
	if err != nil {
		return seckill.ClaimRequest{}, err
	}
	quantity, err := readQuantity(w, r)
	if err != nil {
		return seckill.ClaimRequest{}, err
	}
	id, err := claimID(sale, buyer, key)
	request := seckill.ClaimRequest{ID: id, Buyer: buyer, Quantity: quantity, Key: key}
	if tickets := r.Header[ticketHeader]; len(tickets) == 1 {
		request.Ticket = h.desk.Read(ticket.Holder{Sale: sale, Buyer: buyer}, tickets[0])
	}
	return request, err
}

// usualBody is what nearly every buyer sends.
const usualBody = `{"quantity":1}`

// readQuantity reads the body. The usual one is known at sight; whatever else
// comes is read strictly.
func readQuantity(w http.ResponseWriter, r *http.Request) (int64, error) {
	if r.ContentLength == int64(len(usualBody)) && plainJSON(r.Header) {
		var text [len(usualBody)]byte
		n, err := io.ReadFull(r.Body, text[:])
		if err == nil && string(text[:]) == usualBody {
			return 1, nil
		}
		r.Body = again{io.MultiReader(bytes.NewReader(text[:n]), r.Body), r.Body}
	}
	var body struct {
		Quantity *int64 `json:"quantity"`
	}
	if err := strictjson.Decode(w, r, bodyMax, &body); err != nil {
		return 0, err
	}
	if body.Quantity == nil || *body.Quantity < 1 || *body.Quantity > seckill.QuantityMax {
		return 0, &seckill.FieldError{Field: "quantity", Detail: fmt.Sprintf("must be an integer from 1 to %d", seckill.QuantityMax)}
	}
	return *body.Quantity, nil
}

// again is a body whose start was read and is read again.
type again struct {
	io.Reader
	io.Closer
}

// plainJSON reports whether the headers say application/json and no more.
func plainJSON(h http.Header) bool {
	kinds := h["Content-Type"]
	return len(kinds) == 1 && kinds[0] == "application/json" && len(h["Content-Encoding"]) == 0
}

// idempotencyKey returns the request's Idempotency-Key, "" if it has none.
func idempotencyKey(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	bad := &seckill.FieldError{Field: "Idempotency-Key", Detail: fmt.Sprintf("must be one value of 1 to %d visible ASCII characters", seckill.KeyLengthMax)}
	if len(values) > 1 || values[0] == "" || len(values[0]) > seckill.KeyLengthMax {
		return "", bad
	}
	for _, c := range []byte(values[0]) {
		if c < '!' || c > '~' {
			return "", bad
		}
	}
	return values[0], nil
}

// keyspace separates ids that are derived from keys from other UUIDs.
var keyspace = uuid.MustParse("6f2a1c9e-4d0b-4c6e-9b53-0a7d6a3f5e21")

// claimID returns a new id, or with a key the one that this buyer's key has in
// this sale: however often and wherever it is asked again, it is the same.
func claimID(sale, buyer, key string) (string, error) {
	if key != "" {
		// Version 8 is the form RFC 9562 leaves to the application.
		return uuid.NewHash(sha256.New(), keyspace, []byte(sale+"\x00"+buyer+"\x00"+key), 8).String(), nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make a claim id: %w", err)
	}
	return id.String(), nil
}

// notLoaded tells "no such sale" from "not loaded": the latter is our trouble.
func (h *Handler) notLoaded(ctx context.Context, sale string) error {
	known, err := h.reservations.Known(ctx, sale)
	if err == nil && !known {
		return fmt.Errorf("sale %s: %w", sale, seckill.ErrNotFound)
	}
	return fmt.Errorf("sale %s is not loaded: %w", sale, seckill.ErrUnavailable)
}
