package payment

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// secretMin is the least number of bytes of a signing secret.
const secretMin = 24

// ErrUnverified means that a message does not prove where it comes from: no
// signature, one by another key or of other content, or one older (or newer)
// than five minutes.
var ErrUnverified = errors.New("signature not verified")

// Webhooks signs and verifies messages as the Standard Webhooks specification
// says: HMAC-SHA256 over id, time and body.
type Webhooks struct {
	hook *standardwebhooks.Webhook
}

// NewWebhooks takes the secret shared with the provider: "whsec_" followed by
// base64, or any other text taken as its bytes; at least 24 bytes.
func NewWebhooks(secret string) (*Webhooks, error) {
	key := []byte(secret)
	if encoded, ok := strings.CutPrefix(secret, "whsec_"); ok {
		var err error
		if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return nil, errors.New("webhook secret: what follows whsec_ must be base64")
		}
	}
	if len(key) < secretMin {
		return nil, fmt.Errorf("webhook secret: must have at least %d bytes", secretMin)
	}
	hook, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, fmt.Errorf("webhook secret: %w", err)
	}
	return &Webhooks{hook: hook}, nil
}

var messageIDPattern = regexp.MustCompile(`^[!-~]{1,128}$`)

// Verify returns the id of a message whose headers sign its body, else an
// error that wraps ErrUnverified. The comparison takes constant time.
func (w *Webhooks) Verify(header http.Header, body []byte) (string, error) {
	for _, name := range []string{
		standardwebhooks.HeaderWebhookID, standardwebhooks.HeaderWebhookTimestamp, standardwebhooks.HeaderWebhookSignature,
	} {
		if len(header.Values(name)) != 1 {
			return "", fmt.Errorf("header %s must stand there once: %w", name, ErrUnverified)
		}
	}
	id := header.Get(standardwebhooks.HeaderWebhookID)
	if !messageIDPattern.MatchString(id) {
		return "", fmt.Errorf("header %s must be 1 to 128 visible ASCII characters: %w",
			standardwebhooks.HeaderWebhookID, ErrUnverified)
	}
	if err := w.hook.Verify(body, header); err != nil {
		return "", fmt.Errorf("message %s: %w: %w", id, ErrUnverified, err)
	}
	return id, nil
}

// Sign returns the headers that sign body as message id sent at at.
func (w *Webhooks) Sign(id string, at time.Time, body []byte) (http.Header, error) {
	signature, err := w.hook.Sign(id, at, body)
	if err != nil {
		return nil, fmt.Errorf("sign message %s: %w", id, err)
	}
	header := make(http.Header)
	header.Set(standardwebhooks.HeaderWebhookID, id)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return header, nil
}
