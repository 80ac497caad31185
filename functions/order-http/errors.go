package orderhttp

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"seckill/shared/problem"
	"seckill/shared/seckill"
	"seckill/shared/strictjson"
)

// bodyBytesMax bounds the body of a request that needs none.
const bodyBytesMax = 1 << 10

// emptyBody refuses a body that is neither empty nor an empty JSON object: a
// buyer who sends an amount or an order's state must not think it was heard.
func emptyBody(w http.ResponseWriter, r *http.Request) error {
	reader := bufio.NewReader(r.Body)
	if _, err := reader.Peek(1); errors.Is(err, io.EOF) {
		return nil
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{reader, r.Body}
	return strictjson.Decode(w, r, bodyBytesMax, &struct{}{})
}

// answer writes a document that only its buyer may see.
func answer(w http.ResponseWriter, r *http.Request, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false) // so that a pay_url can be copied as it stands
	if err := encoder.Encode(document); err != nil {
		slog.DebugContext(r.Context(), "answer not sent", "err", err)
	}
}

// fail is where an error becomes an answer.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problem.Of(err)
	if p.Status >= http.StatusInternalServerError {
		slog.WarnContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	problem.Write(w, p)
}

// conflict says what state the order is in.
func conflict(w http.ResponseWriter, order seckill.Order) {
	p := problem.Of(seckill.ErrConflict)
	if order.Status != "" {
		p.Detail = fmt.Sprintf("the order is %s", order.Status)
	}
	problem.Write(w, p)
}
