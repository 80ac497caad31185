package itemdetail

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"seckill/shared/seckill"
)

// detail is an item with its sales: what changes only when somebody edits it.
type detail struct {
	Item  seckill.Item
	Sales []seckill.Sale
}

// version grows with each change of the item or of one of its sales.
func (d detail) version() int64 {
	version := d.Item.Version
	for _, sale := range d.Sales {
		version += sale.Version
	}
	return version
}

// document is one URL's content: one item, or all of them. Everything but the
// rendered page is fixed.
type document struct {
	details []detail
	list    bool
	version int64
	sum     [sha256.Size]byte
	bytes   int

	rendering sync.Mutex
	page      atomic.Pointer[page]
}

func newDocument(details []detail, list bool) (*document, error) {
	text, err := json.Marshal(details)
	if err != nil {
		return nil, fmt.Errorf("encode details: %w", err)
	}
	d := &document{details: details, list: list, sum: sha256.Sum256(text), bytes: len(text)}
	for _, one := range details {
		d.version += one.version()
	}
	return d, nil
}

// entry is what the local cache holds: a document, and since when it is known
// to be what MySQL says.
type entry struct {
	*document
	checkedAt time.Time
	// doubtedAt is when MySQL first answered an older version than this one;
	// zero if it does not.
	doubtedAt time.Time
}

// copyFormat numbers the layout of a shared copy; one of another number is
// not read.
const copyFormat = 1

// sharedCopy is a detail as it is kept in Redis.
type sharedCopy struct {
	Format int
	// ReadMS is how long before it was kept the reading of MySQL had begun.
	ReadMS int64
	detail
}

// encodeCopy returns the shared copy of a detail whose reading began took ago.
func encodeCopy(d detail, took time.Duration) ([]byte, error) {
	text, err := json.Marshal(sharedCopy{Format: copyFormat, ReadMS: took.Milliseconds() + 1, detail: d})
	if err != nil {
		return nil, fmt.Errorf("encode copy of item %s: %w", d.Item.SKU, err)
	}
	return text, nil
}

// decodeCopy reads the shared copy of an item; ok is false if it is not one
// that encodeCopy of this format wrote for this SKU.
func decodeCopy(sku string, text []byte) (c sharedCopy, ok bool) {
	if json.Unmarshal(text, &c) != nil || c.Format != copyFormat || c.ReadMS < 0 ||
		c.Item.SKU != sku || c.Item.Validate() != nil {
		return c, false
	}
	for _, sale := range c.Sales {
		if sale.SKU != sku || sale.Validate() != nil {
			return c, false
		}
	}
	return c, true
}
