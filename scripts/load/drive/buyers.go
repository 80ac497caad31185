package drive

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"strconv"
	"time"
)

// Buyers are as many buyers as one likes, by number. Their tokens are made
// when they are needed, so that a million buyers take no memory.
type Buyers struct {
	// Prefix is the beginning of their names; letters, digits and "-" only.
	Prefix string
	// Secret signs their tokens (HS256), unless Tokens is set.
	Secret []byte
	// Expires is when the tokens end.
	Expires time.Time
	// Tokens are ready-made ones by the buyer's number; then there are no
	// other buyers.
	Tokens []string
}

// Name is what buyer n is called.
func (b *Buyers) Name(n int64) string { return b.Prefix + strconv.FormatInt(n, 10) }

// signer makes the tokens of one session. Its buffers are used again.
type signer struct {
	buyers *Buyers
	mac    hash.Hash
	claims []byte
	out    []byte
}

func (b *Buyers) signer() *signer {
	return &signer{buyers: b, mac: hmac.New(sha256.New, b.Secret)}
}

// jwtHeader is {"alg":"HS256","typ":"JWT"} as a token begins with it.
const jwtHeader = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."

// bearer returns the Authorization header of buyer n, good until the next call.
func (s *signer) bearer(n int64) []byte {
	s.out = append(s.out[:0], "Bearer "...)
	if s.buyers.Tokens != nil {
		s.out = append(s.out, s.buyers.Tokens[n]...)
		return s.out
	}
	from := len(s.out)
	s.claims = append(append(s.claims[:0], `{"sub":"`...), s.buyers.Prefix...)
	s.claims = strconv.AppendInt(s.claims, n, 10)
	s.claims = strconv.AppendInt(append(s.claims, `","exp":`...), s.buyers.Expires.Unix(), 10)
	s.claims = append(s.claims, '}')
	s.out = base64.RawURLEncoding.AppendEncode(append(s.out, jwtHeader...), s.claims)
	s.mac.Reset()
	s.mac.Write(s.out[from:]) // never fails
	var sum [sha256.Size]byte
	s.out = base64.RawURLEncoding.AppendEncode(append(s.out, '.'), s.mac.Sum(sum[:0]))
	return s.out
}
