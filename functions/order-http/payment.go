package orderhttp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"seckill/shared/payment"
	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/strictjson"
)

// callbackBytesMax bounds a callback's body.
const callbackBytesMax = 64 << 10

// paymentJSON is a started payment's document.
type paymentJSON struct {
	Payment     string `json:"payment"`
	Order       string `json:"order"`
	AmountMinor int64  `json:"amount_minor"`
	Currency    string `json:"currency"`
	PayURL      string `json:"pay_url"`
	Status      string `json:"status"`
}

// startPayment answers POST /orders/{id}/payment: 200 with where to pay, the
// same each time; 409 unless the order is unpaid and in time. It writes
// nothing, so it cannot move the deadline.
func (h *Handler) startPayment(w http.ResponseWriter, r *http.Request) {
	buyer, err := h.identity.Buyer(r)
	if err == nil {
		err = emptyBody(w, r)
	}
	if err != nil {
		fail(w, r, err)
		return
	}
	order, err := h.orderOf(r.Context(), r.PathValue("id"), buyer)
	if err != nil {
		fail(w, r, err)
		return
	}
	if order.Status != seckill.OrderUnpaid {
		conflict(w, order)
		return
	}
	started, err := h.provider.Start(r.Context(), order)
	if err != nil {
		fail(w, r, err)
		return
	}
	answer(w, r, paymentJSON{
		Payment: started.ID, Order: order.ID, AmountMinor: order.AmountMinor, Currency: order.Currency,
		PayURL: started.URL, Status: "pending",
	})
}

// resultJSON is the answer to a callback that needs no repeating.
type resultJSON struct {
	Result seckill.PayResult `json:"result"`
}

// ignored answers a callback about a payment that failed.
const ignored seckill.PayResult = "ignored"

// callback answers POST /payments/callback. 200: it is recorded or needs no
// record, the result says which. 422: recorded, but not what the order costs.
// 503: the order is not written yet, or we are in trouble; come again.
func (h *Handler) callback(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, callbackBytesMax))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if !errors.As(err, &tooLarge) {
			err = &seckill.FieldError{Field: "body", Detail: "did not arrive whole"}
		}
		fail(w, r, err)
		return
	}
	id, err := h.provider.Verify(r.Header, body)
	if err != nil {
		slog.WarnContext(r.Context(), "payment callback refused", "err", err)
		problem.Write(w, problem.Problem{
			Status: http.StatusUnauthorized, Code: "unverified", Detail: "the signature was not verified",
		})
		return
	}
	var c payment.Callback
	if err = strictjson.Unmarshal(body, &c); err == nil {
		err = c.Validate()
	}
	if err != nil {
		slog.ErrorContext(r.Context(), "genuine payment callback cannot be read", "callback", id, "err", err)
		fail(w, r, err)
		return
	}
	if c.Status == payment.Failed {
		// Money that did not come changes nothing: the order may be paid by
		// another try, or be paid already.
		slog.InfoContext(r.Context(), "payment failed", "callback", id, "order", c.Order, "payment", c.Payment)
		answer(w, r, resultJSON{ignored})
		return
	}
	h.pay(w, r, id, c)
}

func (h *Handler) pay(w http.ResponseWriter, r *http.Request, id string, c payment.Callback) {
	_, result, err := h.orders.Pay(r.Context(), seckill.Payment{
		Callback: id, Order: c.Order, Provider: h.provider.Name(), Reference: c.Payment,
		AmountMinor: c.AmountMinor, Currency: c.Currency,
	})
	switch {
	case errors.Is(err, seckill.ErrPending) || errors.Is(err, seckill.ErrNotFound):
		problem.Write(w, problem.Problem{
			Status: http.StatusServiceUnavailable, Code: "order_pending",
			Detail: "the order is not written yet; send the callback again", RetryAfter: time.Second,
		})
	case errors.Is(err, seckill.ErrKeyReused):
		slog.ErrorContext(r.Context(), "payment callback's id was used with another content", "callback", id, "order", c.Order)
		problem.Write(w, problem.Problem{
			Status: http.StatusUnprocessableEntity, Code: "key_reused",
			Detail: "the webhook-id was used with another content",
		})
	case err != nil:
		fail(w, r, err)
	case result == seckill.PayMismatch:
		slog.ErrorContext(r.Context(), "payment is not what the order costs", "callback", id, "order", c.Order,
			"amount_minor", c.AmountMinor, "currency", c.Currency)
		problem.Write(w, problem.Problem{
			Status: http.StatusUnprocessableEntity, Code: "amount_mismatch",
			Detail: fmt.Sprintf("the order does not cost %d %s; the payment is recorded", c.AmountMinor, c.Currency),
		})
	default:
		if result == seckill.PayRefundDue {
			slog.WarnContext(r.Context(), "payment must be given back", "callback", id, "order", c.Order)
		}
		answer(w, r, resultJSON{result})
	}
}
