package events

import (
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"seckill/shared/seckill"
)

// ClaimID is the id of the event that says a claim was accepted.
func ClaimID(claim string) string { return claim + ".accepted" }

// AppendClaim appends the event seckill.claim.accepted.v1 as structured JSON.
// traceparent is the W3C trace context of the request that claimed; empty
// leaves it out. It allocates nothing when dst has room (about 700 bytes).
func AppendClaim(dst []byte, c seckill.AcceptedClaim, traceparent string) []byte {
	dst = appendPair(dst, `{"specversion":"1.0","id":`, c.Claim, ".accepted", "")
	dst = append(dst, `,"source":"`+SourceClaims+`","type":"`+string(seckill.EventClaimAccepted)+`"`...)
	dst = appendPair(dst, `,"subject":`, c.Sale, "/", c.Claim)
	dst = appendTime(dst, `,"time":`, c.AcceptedAt)
	dst = append(dst, `,"datacontenttype":"application/json"`...)
	dst = appendField(dst, `,"partitionkey":`, c.Sale)
	if traceparent != "" {
		dst = appendField(dst, `,"traceparent":`, traceparent)
	}
	dst = append(dst, `,"data":`...)
	dst = appendClaimData(dst, c)
	return append(dst, '}')
}

func appendClaimData(dst []byte, c seckill.AcceptedClaim) []byte {
	dst = appendField(dst, `{"claim":`, c.Claim)
	dst = appendField(dst, `,"sale":`, c.Sale)
	dst = appendField(dst, `,"sku":`, c.SKU)
	dst = appendField(dst, `,"buyer":`, c.Buyer)
	dst = appendInt(dst, `,"quantity":`, c.Quantity)
	dst = appendInt(dst, `,"price_minor":`, c.PriceMinor)
	dst = appendField(dst, `,"currency":`, c.Currency)
	dst = appendInt(dst, `,"pay_window_ms":`, c.PayWindowMS)
	dst = appendInt(dst, `,"limit":`, c.Limit)
	dst = appendInt(dst, `,"epoch":`, c.Epoch)
	dst = appendInt(dst, `,"seq":`, c.Seq)
	dst = appendTime(dst, `,"accepted_at":`, c.AcceptedAt)
	return append(dst, '}')
}

// AppendOrder appends an announcement's event as structured JSON. It fails
// only for instants that JSON cannot hold.
func AppendOrder(dst []byte, a seckill.Announcement) ([]byte, error) {
	data, err := json.Marshal(a.Data)
	if err != nil {
		return nil, fmt.Errorf("encode event %s: %w", a.ID, err)
	}
	dst = appendField(dst, `{"specversion":"1.0","id":`, a.ID)
	dst = appendField(dst, `,"source":"`+SourceOrders+`","type":`, string(a.Type))
	dst = appendPair(dst, `,"subject":`, a.Data.Sale, "/", a.Data.Order)
	dst = appendTime(dst, `,"time":`, a.Data.At)
	dst = append(dst, `,"datacontenttype":"application/json"`...)
	dst = appendField(dst, `,"partitionkey":`, a.Data.Sale)
	dst = append(dst, `,"data":`...)
	dst = append(dst, data...)
	return append(dst, '}'), nil
}

// Change is the data of seckill.item.changed.v1 and seckill.sale.changed.v1:
// which item or sale, and its version after the change.
type Change struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
}

// AppendChange appends the event that says an item or a sale changed.
func AppendChange(dst []byte, kind seckill.EventType, c Change) []byte {
	source := SourceSales
	if kind == seckill.EventItemChanged {
		source = SourceItems
	}
	dst = appendField(dst, `{"specversion":"1.0","id":`, c.ID+"."+strconv.FormatInt(c.Version, 10))
	dst = appendField(dst, `,"source":`, source)
	dst = appendField(dst, `,"type":`, string(kind))
	dst = appendField(dst, `,"subject":`, c.ID)
	dst = appendField(dst, `,"datacontenttype":"application/json","data":{"id":`, c.ID)
	dst = appendInt(dst, `,"version":`, c.Version)
	return append(dst, "}}"...)
}

// Change decodes the data of an item's or a sale's change.
func (e Event) Change() (Change, error) {
	var c Change
	if err := json.Unmarshal(e.Data, &c); err != nil {
		return c, fmt.Errorf("decode change of event %s: %w: %w", e.ID, seckill.ErrInvalid, err)
	}
	return c, nil
}

// appendField appends the literal name and s as a JSON string. Nearly every
// string here is plain, so the quoting proper is asked only when one is not.
func appendField(dst []byte, name, s string) []byte {
	dst = append(dst, name...)
	if !plain(s) {
		// The error says that bytes which are no UTF-8 were replaced.
		dst, _ = jsontext.AppendQuote(dst, s)
		return dst
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendPair appends the literal name and a, sep, b as one JSON string.
func appendPair(dst []byte, name, a, sep, b string) []byte {
	if !plain(a) || !plain(b) {
		return appendField(dst, name, a+sep+b)
	}
	dst = append(append(dst, name...), '"')
	dst = append(dst, a...)
	dst = append(dst, sep...)
	dst = append(dst, b...)
	return append(dst, '"')
}

func plain(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b > '~' || b == '"' || b == '\\' {
			return false
		}
	}
	return true
}

func appendInt(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

func appendTime(dst []byte, name string, t time.Time) []byte {
	dst = append(append(dst, name...), '"')
	dst = t.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, '"')
}
