// Package ticket makes and reads entry tickets: signed words that a buyer was
// let into a sale while it was open. Nothing is stored; every replica with the
// same secret reads what another one gave out.
package ticket

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"seckill/shared/seckill"
)

// textMax bounds what is read as a ticket, in bytes; one has less than 100.
const textMax = 128

// Desk gives out tickets and reads them. It is safe for concurrent use.
type Desk struct {
	config    Config
	ticketKey []byte
	puzzleKey []byte
}

// NewDesk returns a desk; without a secret it is shut (see Config.Secret).
func NewDesk(c Config) *Desk {
	d := &Desk{config: c}
	if c.Secret != "" {
		// A key for each purpose: no puzzle can be passed off as a ticket.
		d.ticketKey, d.puzzleKey = mac([]byte(c.Secret), "ticket"), mac([]byte(c.Secret), "puzzle")
	}
	return d
}

// Shut reports whether the desk can give nothing out.
func (d *Desk) Shut() bool { return d.ticketKey == nil }

// Holder is whom a ticket or a puzzle is for; another's is worth nothing.
type Holder struct {
	Sale  string
	Buyer string
}

// Issue returns a ticket from now on, which is Redis' clock, and what it says.
func (d *Desk) Issue(h Holder, kind seckill.TicketKind, epoch int64, now time.Time) (string, seckill.Ticket) {
	t := seckill.Ticket{Kind: kind, Epoch: epoch, Until: now.Add(d.config.For).Truncate(time.Millisecond)}
	says := fmt.Sprintf("%s.%d.%d", t.Kind, t.Epoch, t.Until.UnixMilli())
	return says + "." + d.seal(h, says), t
}

// Read returns what a ticket says; the zero ticket unless this desk, or one of
// the same secret, issued it to this holder. It may be out of date.
func (d *Desk) Read(h Holder, text string) seckill.Ticket {
	i := strings.LastIndexByte(text, '.')
	if d.Shut() || i < 0 || len(text) > textMax || !hmac.Equal([]byte(text[i+1:]), []byte(d.seal(h, text[:i]))) {
		return seckill.Ticket{}
	}
	f := strings.Split(text[:i], ".")
	if len(f) != 3 {
		return seckill.Ticket{}
	}
	epoch, err := strconv.ParseInt(f[1], 10, 64)
	until, err2 := strconv.ParseInt(f[2], 10, 64)
	if err != nil || err2 != nil {
		return seckill.Ticket{}
	}
	return seckill.Ticket{Kind: seckill.TicketKind(f[0]), Epoch: epoch, Until: time.UnixMilli(until).UTC()}
}

// seal signs what a ticket says for its holder; ids have no NUL in them.
func (d *Desk) seal(h Holder, says string) string {
	return base64.RawURLEncoding.EncodeToString(mac(d.ticketKey, h.Sale+"\x00"+h.Buyer+"\x00"+says))
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write([]byte(text)) // a hash takes everything
	return m.Sum(nil)
}
