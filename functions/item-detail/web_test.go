package itemdetail

import (
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"seckill/shared/seckill"
)

var pageNow = time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)

// saleAt is a sale that is open from one instant to another, as minutes from
// pageNow.
func saleAt(id string, from, to int) seckill.Sale {
	at := func(minutes int) time.Time { return pageNow.Add(time.Duration(minutes) * time.Minute) }
	return seckill.Sale{
		ID: id, SKU: "tea", PriceMinor: 9900, Currency: "CNY", Units: 100, Limit: 1,
		OpensAt: at(from), ClosesAt: at(to), PayWindow: time.Minute,
	}
}

func renderedPage(t *testing.T, lang int, item seckill.Item, stocks map[string]int64, sales ...seckill.Sale) string {
	t.Helper()
	d, err := newDocument([]detail{{Item: item, Sales: sales}}, false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.render(nil, stocks, pageNow, pageNow)
	if err != nil {
		t.Fatal(err)
	}
	return string(web{signIn: "/sign-in"}.render(d, p, lang))
}

// Every text has both languages, and every hole of a fragment something to
// fill it.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	for name := range texts[english] {
		if texts[chinese][name] == "" {
			t.Errorf("%q is not in Chinese", name)
		}
	}
	if len(texts[english]) != len(texts[chinese]) {
		t.Error("a Chinese text is not in English")
	}
	for _, reason := range seckill.Reasons() {
		if reason == seckill.ReasonSaleUnknown || reason == seckill.ReasonReleased {
			continue // nothing a buyer could do with it: "rejected" says enough
		}
		if texts[english]["say.rejected_"+string(reason)] == "" {
			t.Errorf("a rejection for %q has no text", reason)
		}
	}
	script, err := webFiles.ReadFile("web/page.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, said := range regexp.MustCompile(`(?:say|show)\("([a-z_-]+)"(?:, "([a-z_]+)")?\)`).FindAllStringSubmatch(string(script), -1) {
		name := said[1]
		if said[2] != "" {
			name = said[2]
		}
		if texts[english]["say."+name] == "" {
			t.Errorf("the script says %q, which has no text", name)
		}
	}
	if page := renderedPage(t, english, seckill.Item{SKU: "tea", Name: "Tea"}, nil, saleAt("s", -1, 1)); strings.Contains(page, "{{") || strings.Contains(page, `=""`) &&
		!strings.Contains(page, `data-stock=""`) {
		t.Errorf("something is not filled in:\n%s", page)
	}
}

// What an operator wrote shows as text, wherever it stands.
func TestOperatorsTextIsNoMarkup(t *testing.T) {
	t.Parallel()
	evil := `"><script>alert(1)</script><img src=x onerror=alert(1)> {{price}} '`
	page := renderedPage(t, english, seckill.Item{SKU: "tea", Name: evil, Description: evil, ImageURL: "/" + evil}, nil, saleAt("s", -1, 1))
	if strings.Contains(page, "<script>") || strings.Contains(page, "<img src=x") || strings.Contains(page, `/">`) {
		t.Errorf("markup got through:\n%s", page)
	}
	if !strings.Contains(page, "{{price}} &#39;</h1>") {
		t.Errorf("the name is not as it was written:\n%s", page)
	}
}

// No picture and no script of another origin.
func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	for image, shown := range map[string]bool{
		"/tea.jpg": true, "https://elsewhere.test/tea.jpg": false, "//elsewhere.test/tea.jpg": false, "javascript:alert(1)": false, "": false,
	} {
		page := renderedPage(t, english, seckill.Item{SKU: "tea", Name: "Tea", ImageURL: image}, nil, saleAt("s", -1, 1))
		if strings.Contains(page, "<img") != shown {
			t.Errorf("%q: shown %t", image, !shown)
		}
		if strings.Contains(page, "<style") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(page) || strings.Contains(page, " style=") {
			t.Errorf("something is inline:\n%s", page)
		}
	}
}

func TestPageShowsTheSaleThatMatters(t *testing.T) {
	t.Parallel()
	over, longOver, open, soon, later := saleAt("over", -20, -10), saleAt("long-over", -40, -30), saleAt("open", -5, 5), saleAt("soon", 10, 20), saleAt("later", 30, 40)
	for want, sales := range map[string][]seckill.Sale{
		"open": {over, open, soon}, "soon": {longOver, later, over, soon}, "over": {longOver, over}, "later": {later},
	} {
		page := renderedPage(t, english, seckill.Item{SKU: "tea", Name: "Tea"}, nil, sales...)
		if !strings.Contains(page, `data-sale="`+want+`"`) {
			t.Errorf("%s is not shown of %d sales", want, len(sales))
		}
	}
	if page := renderedPage(t, chinese, seckill.Item{SKU: "tea", Name: "Tea"}, nil); !strings.Contains(page, "目前没有抢购") {
		t.Errorf("without a sale: %s", page)
	}
}

// "Not known" and "sold out" differ.
func TestPageTellsUnknownFromSoldOut(t *testing.T) {
	t.Parallel()
	for text, stocks := range map[string]map[string]int64{
		`<strong id="stock">not known</strong>`: nil, `<strong id="stock">0</strong>`: {"s": 0}, `<strong id="stock">7</strong>`: {"s": 7},
	} {
		if page := renderedPage(t, english, seckill.Item{SKU: "tea", Name: "Tea"}, stocks, saleAt("s", -1, 1)); !strings.Contains(page, text) {
			t.Errorf("no %s with %v", text, stocks)
		}
	}
}

func TestLanguageOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query, accept string
		want          int
	}{
		{"", "", english},
		{"", "zh-CN,zh;q=0.9,en;q=0.8", chinese},
		{"", "en-GB,zh;q=0.5", english},
		{"", "fr,zh-TW;q=0.3", chinese},
		{"", "de", english},
		{"zh", "en", chinese},
		{"en", "zh", english},
		{"xx", "zh", chinese},
		{"", "zh;q=0,en;q=0.1", english},
		{"", ";;q=,zh;q=x", english},
	} {
		if got := languageOf(c.query, []string{c.accept}); got != c.want {
			t.Errorf("%q %q: %s", c.query, c.accept, langNames[got])
		}
	}
}

func TestWantsPage(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "application/json": false, "text/html": true, "text/html,application/xhtml+xml,*/*;q=0.8": true,
		"application/json, text/html": false, "text/html;q=0": false, "text/event-stream": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/items/tea", nil)
		r.Header.Set("Accept", accept)
		if wantsPage(r) != want {
			t.Errorf("%q: %t", accept, !want)
		}
	}
}

func TestAmount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		minor    int64
		currency string
		want     string
	}{{9900, "CNY", "99.00 CNY"}, {5, "EUR", "0.05 EUR"}, {500, "JPY", "500 JPY"}, {1234, "KWD", "1.234 KWD"}, {7, "KWD", "0.007 KWD"}} {
		if got := amount(c.minor, c.currency); got != c.want {
			t.Errorf("%d %s is %q", c.minor, c.currency, got)
		}
	}
}
