package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"seckill/scripts/load/drive"
)

// itemDocument is the part of an item's document that matters here.
type itemDocument struct {
	Sales []struct {
		ID      string    `json:"id"`
		OpensAt time.Time `json:"opens_at"`
		Stock   *int64    `json:"stock"`
	} `json:"sales"`
}

func readItemDocument(s *drive.Session, path string) (itemDocument, error) {
	var d itemDocument
	call := drive.Call{Method: http.MethodGet, Path: path, Buyer: drive.Nobody, Headers: [][2]string{{"Accept", "application/json"}}}
	status, err := s.Do(&call)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s was answered %d", path, status)
	}
	if err == nil {
		err = json.Unmarshal(s.Body(), &d)
	}
	return d, err
}

// waitMax bounds how long a run waits for an existing sale to open.
const waitMax = 10 * time.Minute

// opensAt asks when the existing sale opens.
func (l *load) opensAt(sku string) (time.Time, error) {
	d, err := readItemDocument(l.session(), "/items/"+sku)
	if err != nil {
		return time.Time{}, fmt.Errorf("look at sale %s: %w (-sku names its item)", l.sale, err)
	}
	for _, sale := range d.Sales {
		if sale.ID != l.sale {
			continue
		}
		if time.Until(sale.OpensAt) > waitMax {
			return time.Time{}, errors.New("the sale opens too late to wait for it: " + sale.OpensAt.Format(time.RFC3339))
		}
		return sale.OpensAt, nil
	}
	return time.Time{}, fmt.Errorf("item %s has no sale %s", sku, l.sale)
}

// stockSeen is the stock that a reader of the item is shown; ok is false if
// that is unknown.
func (l *load) stockSeen(s *drive.Session) (stock int64, ok bool) {
	d, err := readItemDocument(s, l.itemPath)
	if err != nil {
		return 0, false
	}
	for _, sale := range d.Sales {
		if sale.ID == l.sale && sale.Stock != nil {
			return *sale.Stock, true
		}
	}
	return 0, false
}
