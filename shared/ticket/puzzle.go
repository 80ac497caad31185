package ticket

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Why a solution buys no ticket.
var (
	// ErrUnsolved: it is none, or of another's puzzle, or of an easier one.
	ErrUnsolved = errors.New("the puzzle is not solved")
	// ErrExpired: its puzzle is over.
	ErrExpired = errors.New("the puzzle has expired")
)

const (
	algorithm = "SHA-256"
	// solutionMax bounds a solution's text in bytes.
	solutionMax = 2048
)

// Puzzle is a challenge in the form of ALTCHA: Challenge is the hash of Salt
// followed by a number of at most MaxNumber, which is to be found.
type Puzzle struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	MaxNumber int64  `json:"maxnumber"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

// solution is what a solver sends, as base64 of JSON; other members, such as
// how long it took, are not looked at.
type solution struct {
	Algorithm string `json:"algorithm"`
	Challenge string `json:"challenge"`
	Number    int64  `json:"number"`
	Salt      string `json:"salt"`
	Signature string `json:"signature"`
}

// Puzzle returns a puzzle that is good for this holder and epoch for
// Config.For.
func (d *Desk) Puzzle(h Holder, epoch int64, now time.Time) (Puzzle, error) {
	number, err := randomNumber(d.config.Work)
	if err != nil {
		return Puzzle{}, fmt.Errorf("make a puzzle: %w", err)
	}
	var nonce [12]byte
	_, _ = rand.Read(nonce[:]) // never fails
	salt := hex.EncodeToString(nonce[:]) + terms(h, epoch, d.config.Work, now.Add(d.config.For).Unix())
	challenge := hashed(salt, number)
	return Puzzle{
		Algorithm: algorithm, Challenge: challenge, MaxNumber: d.config.Work, Salt: salt,
		Signature: hex.EncodeToString(mac(d.puzzleKey, challenge)),
	}, nil
}

// Check returns nil if text solves a puzzle of this desk for this holder and
// epoch, else ErrUnsolved or ErrExpired. It costs one hash and one signature.
func (d *Desk) Check(h Holder, epoch int64, now time.Time, text string) error {
	raw, err := base64.StdEncoding.DecodeString(text)
	var s solution
	if err != nil || len(text) > solutionMax || json.Unmarshal(raw, &s) != nil || s.Algorithm != algorithm {
		return ErrUnsolved
	}
	most, expires, ok := read(h, epoch, s.Salt)
	if !ok || most < d.config.Work || s.Number < 0 || s.Number > most || s.Challenge != hashed(s.Salt, s.Number) {
		return ErrUnsolved
	}
	signature, err := hex.DecodeString(s.Signature)
	if err != nil || !hmac.Equal(signature, mac(d.puzzleKey, s.Challenge)) {
		return ErrUnsolved
	}
	if now.Unix() >= expires {
		return ErrExpired
	}
	return nil
}

// terms are the part of a salt that says what the puzzle is good for. They end
// with a separator: else digits of the number could be taken for their end, and
// a solution for that of a puzzle with other terms.
func terms(h Holder, epoch, most, expires int64) string {
	return fmt.Sprintf("?expires=%d&max=%d&epoch=%d&sale=%s&buyer=%s&", expires, most, epoch, h.Sale, h.Buyer)
}

// read reads the terms of a salt; ok is false unless they are for this holder
// and epoch, to the letter.
func read(h Holder, epoch int64, salt string) (most, expires int64, ok bool) {
	_, said, _ := strings.Cut(salt, "?")
	if _, err := fmt.Sscanf(said, "expires=%d&max=%d&", &expires, &most); err != nil {
		return 0, 0, false
	}
	return most, expires, "?"+said == terms(h, epoch, most, expires)
}

func hashed(salt string, number int64) string {
	sum := sha256.Sum256([]byte(salt + strconv.FormatInt(number, 10)))
	return hex.EncodeToString(sum[:])
}

func randomNumber(most int64) (int64, error) {
	n, err := rand.Int(rand.Reader, big.NewInt(most+1))
	if err != nil {
		return 0, fmt.Errorf("draw a number: %w", err)
	}
	return n.Int64(), nil
}
