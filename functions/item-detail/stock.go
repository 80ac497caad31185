package itemdetail

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"seckill/shared/seckill"
)

const (
	// stockFresh is how long a stock is shown without reading it again, and
	// stockMax how long at all: in between it is read in the background.
	stockFresh = 500 * time.Millisecond
	stockMax   = time.Second
)

var errGateClosed = errors.New("failed a moment ago")

// stockReader renders documents with their live stock. Each document is read
// by one caller at a time, whoever else comes waits for it or is served the
// page that stands.
type stockReader struct {
	shared  Shared
	gate    *gate
	timeout time.Duration
	now     func() time.Time
}

// page returns the document's page for now, with a stock at most stockMax old.
func (s *stockReader) page(ctx context.Context, d *document, now time.Time) (*page, error) {
	if p := d.page.Load(); p != nil && now.Before(p.turnsAt) {
		if now.Before(p.dueAt) {
			return p, nil
		}
		if now.Before(p.readAt.Add(stockMax)) {
			if d.rendering.TryLock() {
				go func() {
					defer d.rendering.Unlock()
					s.logged(s.refresh(context.WithoutCancel(ctx), d))
				}()
			}
			return p, nil
		}
	}
	d.rendering.Lock()
	defer d.rendering.Unlock()
	return s.refresh(context.WithoutCancel(ctx), d)
}

func (s *stockReader) logged(_ *page, err error) {
	if err != nil {
		slog.Error("page not rendered", "err", err)
	}
}

// refresh renders the page again, unless somebody else just has, and reads
// the stock if it is due. d.rendering is held.
func (s *stockReader) refresh(ctx context.Context, d *document) (*page, error) {
	old, now := d.page.Load(), s.now()
	if old != nil && now.Before(old.dueAt) && now.Before(old.turnsAt) {
		return old, nil
	}
	var stocks map[string]int64
	readAt, keepOld := now, old != nil && now.Before(old.dueAt)
	if !keepOld {
		var err error
		stocks, err = s.read(ctx, d.liveSales(now))
		now = s.now()
		if err != nil {
			stocks = nil
			keepOld = old != nil && now.Before(old.readAt.Add(stockMax))
		}
	}
	if keepOld {
		stocks, readAt = old.stocks, old.readAt
	}
	p, err := d.render(old, stocks, readAt, now)
	if err != nil {
		return nil, err
	}
	if !now.Before(p.dueAt) { // the old stock stays until it is too old
		p.dueAt = readAt.Add(stockMax)
	}
	d.page.Store(p)
	return p, nil
}

func (s *stockReader) read(ctx context.Context, sales []string) (map[string]int64, error) {
	if len(sales) == 0 {
		return nil, nil
	}
	if !s.gate.enter() {
		return nil, errGateClosed
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	stocks, err := s.shared.Stocks(ctx, sales)
	s.gate.leave(ctx, err)
	if err != nil && !errors.Is(err, seckill.ErrUnavailable) {
		slog.WarnContext(ctx, "stock not read", "err", err)
	}
	return stocks, err
}
