package itemdetail

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"seckill/shared/seckill"
)

// web renders pages.
type web struct {
	signIn string // where a buyer signs in, empty if the page cannot tell
}

// whole puts a page around its main part.
func (web web) whole(path string, lang int, title string, script, main markup) []byte {
	v := plain(
		"title", title, "path", path, "name", langNames[lang], "other", langNames[1-lang],
		"style", assets["page.css"].path, "icon", assets["icon.svg"].path,
	)
	v["script"], v["main"] = script, main
	return []byte(fill("head", v, texts[lang]))
}

// notice is a page that only says something.
func (web web) notice(path string, lang int, what string) []byte {
	words := texts[lang]
	return web.whole(path, lang, words[what], "", fill("notice", plain("notice", words[what+"_text"]), words))
}

// render makes the page of a document with what p shows.
func (web web) render(d *document, p *page, lang int) []byte {
	if d.list {
		return web.list(d, p, lang)
	}
	one, words := d.details[0], texts[lang]
	path := "/items/" + one.Item.SKU
	var main, script markup
	if image := one.Item.ImageURL; strings.HasPrefix(image, "/") && !strings.HasPrefix(image, "//") {
		main += fill("picture", plain("image", image), words)
	}
	if one.Item.Description != "" {
		main += fill("about", plain("description", one.Item.Description), words)
	}
	if i := present(one.Sales, p.shownAt); i >= 0 {
		script = fill("script", plain("script", assets["page.js"].path), words)
		main += web.sale(path, one.Sales[i], p, lang)
		main += others(slices.Concat(one.Sales[:i], one.Sales[i+1:]), p, words)
	} else {
		main += fill("notice", plain("notice", words["no_sale"]), words)
	}
	return web.whole(path, lang, one.Item.Name, script, main)
}

// sale is the part that a buyer buys with.
func (web web) sale(path string, s seckill.Sale, p *page, lang int) markup {
	words := texts[lang]
	v := saleValues(s, p, words)
	maps.Copy(v, plain("path", path, "clock", clockPath))
	if s.Limit > 1 {
		v["limit_line"], v["choose"] = fill("limit", v, words), fill("choose", v, words)
	}
	if web.signIn != "" {
		v["sign_in_link"] = fill("sign-in", plain("url", web.signIn+"?back="+url.QueryEscape(path)), words)
	}
	v["says"] = join("say", sayings[lang], words)
	return fill("sale", v, words)
}

func others(sales []seckill.Sale, p *page, words map[string]string) markup {
	if len(sales) == 0 {
		return ""
	}
	many := make([]values, len(sales))
	for i, s := range sales {
		many[i] = saleValues(s, p, words)
	}
	return fill("others", values{"list": join("other", many, words)}, words)
}

func (web web) list(d *document, p *page, lang int) []byte {
	words := texts[lang]
	items := make([]values, len(d.details))
	for i, one := range d.details {
		sales := make([]values, len(one.Sales))
		for j, s := range one.Sales {
			sales[j] = saleValues(s, p, words)
		}
		items[i] = plain("sku", one.Item.SKU, "item", one.Item.Name, "name", langNames[lang])
		items[i]["sales"] = join("listed-sale", sales, words)
	}
	main := fill("list", values{"list": join("listed", items, words)}, words)
	if len(items) == 0 {
		main = fill("notice", plain("notice", words["no_sale"]), words)
	}
	return web.whole("/items", lang, words["all_sales"], "", main)
}

// present picks the sale that a buyer looks for: one that is on, else the next,
// else the last; -1 if there is none.
func present(sales []seckill.Sale, now time.Time) int {
	best, rank := -1, 0
	for i, s := range sales {
		r := map[seckill.SaleState]int{seckill.SaleOpen: 4, seckill.SalePaused: 3, seckill.SaleScheduled: 2, seckill.SaleClosed: 1}[s.State(now)]
		before := best >= 0 && s.OpensAt.Before(sales[best].OpensAt)
		if r > rank || r == rank && before == (r == 2) { // the next one, or the last
			best, rank = i, r
		}
	}
	return best
}

// saleValues are what a person reads of a sale.
func saleValues(s seckill.Sale, p *page, words map[string]string) values {
	state := s.State(p.shownAt)
	stateText, stock, bar, stockText := words[string(state)], "", "0", words["unknown"]
	if n, known := p.stocks[s.ID]; known {
		stock = strconv.FormatInt(max(n, 0), 10)
		bar, stockText = stock, stock
		if n <= 0 && state == seckill.SaleOpen {
			stateText = words["sold_out"]
		}
	}
	return plain(
		"id", s.ID, "price", amount(s.PriceMinor, s.Currency), "state", string(state), "state_text", stateText,
		"stock", stock, "bar", bar, "ticket", string(s.Ticket), "stock_text", stockText,
		"units", strconv.FormatInt(s.Units, 10), "limit", strconv.FormatInt(s.Limit, 10),
		"opens_ms", strconv.FormatInt(s.OpensAt.UnixMilli(), 10), "closes_ms", strconv.FormatInt(s.ClosesAt.UnixMilli(), 10),
		"opens_at", s.OpensAt.Format(time.RFC3339), "opens_text", s.OpensAt.Format("2006-01-02 15:04 MST"),
		"closes_at", s.ClosesAt.Format(time.RFC3339), "closes_text", s.ClosesAt.Format("2006-01-02 15:04 MST"),
	)
}
