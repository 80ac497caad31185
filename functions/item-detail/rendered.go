package itemdetail

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// rendered is an answer ready to be written, as it is and compressed.
type rendered struct {
	body []byte
	// etag and length are header values, made once.
	etag   []string
	length []string

	packing sync.Once
	packed  *rendered // nil if that saves nothing
}

func newRendered(body []byte) *rendered {
	sum := sha256.Sum256(body)
	return &rendered{
		body: body, etag: []string{`"` + hex.EncodeToString(sum[:16]) + `"`}, length: []string{strconv.Itoa(len(body))},
	}
}

// packMin is the least number of bytes that are compressed: less fits into one
// packet as it is.
const packMin = 1200

// compressed returns the answer in gzip, made when somebody first asks for it
// and kept as long as the answer; nil if that saves nothing.
func (c *rendered) compressed() *rendered {
	c.packing.Do(func() {
		if len(c.body) < packMin {
			return
		}
		var out bytes.Buffer
		pack := gzip.NewWriter(&out)
		_, _ = pack.Write(c.body) // a buffer takes whatever comes
		if pack.Close() == nil && out.Len() < len(c.body) {
			c.packed = newRendered(out.Bytes())
		}
	})
	return c.packed
}

var gzipValue = []string{"gzip"}

// write answers with what is rendered, compressed for who takes that, or that
// the reader has it. Nothing is rendered and nothing copied here.
func write(w http.ResponseWriter, r *http.Request, content *rendered, caching []string) {
	header := w.Header()
	if takesGzip(r.Header["Accept-Encoding"]) {
		if packed := content.compressed(); packed != nil {
			content = packed
			header["Content-Encoding"] = gzipValue
		}
	}
	header["Cache-Control"], header["Etag"] = caching, content.etag
	if match := r.Header["If-None-Match"]; len(match) > 0 && matches(match, content.etag[0]) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header["Content-Length"] = content.length
	_, _ = w.Write(content.body)
}

// takesGzip reports whether the values of Accept-Encoding name gzip, and not
// with weight zero.
func takesGzip(values []string) bool {
	for _, value := range values {
		for coding := range strings.SplitSeq(value, ",") {
			name, weight, _ := strings.Cut(strings.TrimSpace(coding), ";")
			if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
				continue
			}
			q, isWeight := strings.CutPrefix(strings.TrimSpace(weight), "q=")
			n, err := strconv.ParseFloat(q, 64)
			return !isWeight || err != nil || n > 0
		}
	}
	return false
}
