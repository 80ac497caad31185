package itemdetail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"seckill/shared/seckill"
)

// page is a document rendered for the stock and the states at one instant,
// ready to be written.
type page struct {
	*rendered
	// stocks are the live stocks it shows, read at readAt; a sale whose stock
	// is unknown is absent.
	stocks map[string]int64
	readAt time.Time
	// dueAt is when the stock should be read again, turnsAt when a sale
	// changes its state.
	dueAt   time.Time
	turnsAt time.Time
	// html is what persons read, shownAt the instant it is for.
	html    *pages
	shownAt time.Time
}

type itemJSON struct {
	SKU         string     `json:"sku"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	ImageURL    string     `json:"image_url"`
	Sales       []saleJSON `json:"sales"`
}

type saleJSON struct {
	ID         string            `json:"id"`
	PriceMinor int64             `json:"price_minor"`
	Currency   string            `json:"currency"`
	OpensAt    time.Time         `json:"opens_at"`
	ClosesAt   time.Time         `json:"closes_at"`
	Limit      int64             `json:"limit"`
	State      seckill.SaleState `json:"state"`
	// Stock is null when the sale is not loaded or nobody can tell.
	Stock   *int64 `json:"stock"`
	SoldOut bool   `json:"sold_out"`
	// Ticket is the kind of entry ticket that a claim needs, if any.
	Ticket seckill.TicketKind `json:"ticket,omitempty"`
}

type listJSON struct {
	Items []itemJSON `json:"items"`
}

// render makes the page that shows stocks, read at readAt, and the states at
// now. The bytes of old are kept if they still say the same.
func (d *document) render(old *page, stocks map[string]int64, readAt, now time.Time) (*page, error) {
	items := make([]itemJSON, len(d.details))
	for i, one := range d.details {
		items[i] = one.json(stocks, now)
	}
	var content any = listJSON{Items: items}
	if !d.list {
		content = items[0]
	}
	body, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("render: %w", err)
	}
	p := &page{stocks: stocks, readAt: readAt, dueAt: readAt.Add(stockFresh), turnsAt: d.turnsAt(now), shownAt: now}
	if old != nil && bytes.Equal(old.body, body) {
		p.rendered, p.html = old.rendered, old.html
		return p, nil
	}
	p.rendered, p.html = newRendered(body), &pages{}
	return p, nil
}

func (d detail) json(stocks map[string]int64, now time.Time) itemJSON {
	item := itemJSON{
		SKU: d.Item.SKU, Name: d.Item.Name, Description: d.Item.Description, ImageURL: d.Item.ImageURL,
		Sales: make([]saleJSON, len(d.Sales)),
	}
	for i, s := range d.Sales {
		sale := saleJSON{
			ID: s.ID, PriceMinor: s.PriceMinor, Currency: s.Currency, OpensAt: s.OpensAt, ClosesAt: s.ClosesAt,
			Limit: s.Limit, State: s.State(now), Ticket: s.Ticket,
		}
		if stock, known := stocks[s.ID]; known {
			stock = max(stock, 0)
			sale.Stock, sale.SoldOut = &stock, stock == 0
		}
		item.Sales[i] = sale
	}
	return item
}

// turnsAt returns the first instant after now at which a sale changes state.
func (d *document) turnsAt(now time.Time) time.Time {
	next := now.Add(time.Hour)
	for _, one := range d.details {
		for _, sale := range one.Sales {
			for _, at := range []time.Time{sale.OpensAt, sale.ClosesAt} {
				if at.After(now) && at.Before(next) {
					next = at
				}
			}
		}
	}
	return next
}

// liveSales returns the ids of the sales whose stock Redis may know.
func (d *document) liveSales(now time.Time) []string {
	var ids []string
	for _, one := range d.details {
		for _, sale := range one.Sales {
			if !sale.Archived(now) {
				ids = append(ids, sale.ID)
			}
		}
	}
	return ids
}
