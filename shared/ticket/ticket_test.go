package ticket

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"seckill/shared/seckill"
)

func deskOf(t *testing.T, secret string) *Desk {
	t.Helper()
	c := Config{Secret: secret, For: time.Minute, Work: 1000}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return NewDesk(c)
}

func newSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

var (
	alice = Holder{"tea", "alice"}
	noon  = time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
)

func TestTicketIsReadByItsHolderAlone(t *testing.T) {
	t.Parallel()
	secret := newSecret()
	desk := deskOf(t, secret)
	text, says := desk.Issue(alice, seckill.TicketSigned, 3, noon)
	if want := (seckill.Ticket{Kind: seckill.TicketSigned, Epoch: 3, Until: noon.Add(time.Minute)}); says != want {
		t.Errorf("issued %+v, want %+v", says, want)
	}
	if got := deskOf(t, secret).Read(alice, text); got != says {
		t.Errorf("another replica reads %+v, want %+v", got, says)
	}
	forged := strings.Replace(text, ".3.", ".4.", 1)
	later := strings.Replace(text, ".3.1", ".3.2", 1)
	work := strings.Replace(text, "signed", "work", 1)
	for name, c := range map[string]struct {
		desk   *Desk
		holder Holder
		text   string
	}{
		"other buyer":    {desk, Holder{"tea", "bob"}, text},
		"other sale":     {desk, Holder{"cup", "alice"}, text},
		"moved border":   {desk, Holder{"te", "aalice"}, text},
		"other epoch":    {desk, alice, forged},
		"other time":     {desk, alice, later},
		"other kind":     {desk, alice, work},
		"cut":            {desk, alice, text[:len(text)-1]},
		"longer":         {desk, alice, text + "A"},
		"no seal":        {desk, alice, "signed.3.1900000000000."},
		"empty":          {desk, alice, ""},
		"long":           {desk, alice, strings.Repeat("9", 10_000) + text},
		"another secret": {deskOf(t, newSecret()), alice, text},
		"shut":           {deskOf(t, ""), alice, text},
	} {
		if got := c.desk.Read(c.holder, c.text); got != (seckill.Ticket{}) {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	if !deskOf(t, "").Shut() || desk.Shut() {
		t.Error("a desk without a secret is shut, and no other")
	}
}

// solve finds the number of a puzzle and returns its solution as sent.
func solve(t *testing.T, p Puzzle, change func(*solution)) string {
	t.Helper()
	s := solution{Algorithm: p.Algorithm, Challenge: p.Challenge, Salt: p.Salt, Signature: p.Signature, Number: -1}
	for n := range p.MaxNumber + 1 {
		if hashed(p.Salt, n) == p.Challenge {
			s.Number = n
			break
		}
	}
	if s.Number < 0 {
		t.Fatal("the puzzle has no solution")
	}
	if change != nil {
		change(&s)
	}
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func TestPuzzleIsGoodForItsHolderAlone(t *testing.T) {
	t.Parallel()
	secret := newSecret()
	desk := deskOf(t, secret)
	p, err := desk.Puzzle(alice, 3, noon)
	if err != nil {
		t.Fatal(err)
	}
	solved := solve(t, p, nil)
	harder := NewDesk(Config{Secret: secret, For: time.Minute, Work: 1001})
	own := p // made by the buyer himself, with a number that he knows
	own.Challenge = hashed(own.Salt, 0)
	for name, c := range map[string]struct {
		desk   *Desk
		holder Holder
		epoch  int64
		now    time.Time
		text   string
		want   error
	}{
		"solved":            {desk, alice, 3, noon, solved, nil},
		"solved elsewhere":  {deskOf(t, secret), alice, 3, noon.Add(59 * time.Second), solved, nil},
		"late":              {desk, alice, 3, noon.Add(time.Minute), solved, ErrExpired},
		"other buyer":       {desk, Holder{"tea", "bob"}, 3, noon, solved, ErrUnsolved},
		"other sale":        {desk, Holder{"cup", "alice"}, 3, noon, solved, ErrUnsolved},
		"old epoch":         {desk, alice, 4, noon, solved, ErrUnsolved},
		"too easy":          {harder, alice, 3, noon, solved, ErrUnsolved},
		"another secret":    {deskOf(t, newSecret()), alice, 3, noon, solved, ErrUnsolved},
		"missing":           {desk, alice, 3, noon, "", ErrUnsolved},
		"not base64":        {desk, alice, 3, noon, "%", ErrUnsolved},
		"not JSON":          {desk, alice, 3, noon, base64.StdEncoding.EncodeToString([]byte("x")), ErrUnsolved},
		"wrong number":      {desk, alice, 3, noon, solve(t, p, func(s *solution) { s.Number++ }), ErrUnsolved},
		"another algorithm": {desk, alice, 3, noon, solve(t, p, func(s *solution) { s.Algorithm = "SHA-1" }), ErrUnsolved},
		"own puzzle":        {desk, alice, 3, noon, solve(t, own, nil), ErrUnsolved},
		"later terms": {desk, alice, 3, noon, solve(t, p, func(s *solution) {
			s.Salt = strings.Replace(s.Salt, "?expires=1", "?expires=2", 1)
			s.Challenge = hashed(s.Salt, s.Number)
		}), ErrUnsolved},
		"spliced": {desk, alice, 3, noon, solve(t, p, func(s *solution) { // the same hash, of a longer salt
			s.Salt, s.Number = s.Salt+"0", 0
			s.Challenge = hashed(s.Salt, 0)
			s.Signature = hex.EncodeToString(mac(desk.puzzleKey, s.Challenge))
		}), ErrUnsolved},
	} {
		if err := c.desk.Check(c.holder, c.epoch, c.now, c.text); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestConfigRefusesNonsense(t *testing.T) {
	t.Parallel()
	good := Config{For: time.Minute, Work: 1000}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"TICKET_SECRET": func(c *Config) { c.Secret = strings.Repeat("x", 31) },
		"TICKET_FOR":    func(c *Config) { c.For = time.Second },
		"TICKET_WORK":   func(c *Config) { c.Work = 0 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
