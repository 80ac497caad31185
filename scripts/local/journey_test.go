package main_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// shopWindow is a running system with some sales, and a browser.
type shopWindow struct {
	*system
	browser context.Context //nolint:containedctx // chromedp's handle of a browser
}

// offer puts an item with a sale of its own on sale and returns its page.
func (s *shopWindow) offer(id string, change map[string]any) string {
	s.t.Helper()
	s.put("item", map[string]any{"sku": id, "name": "Tea 茶 " + id, "description": "Dark.\n浓茶。", "image_url": ""})
	sale := map[string]any{
		"id": id, "sku": id, "price_minor": 9900, "currency": "CNY", "units": 100, "limit": 1, "pay_window": "15m",
		"opens_at": time.Now().Add(-time.Minute).Format(time.RFC3339), "closes_at": time.Now().Add(time.Hour).Format(time.RFC3339),
	}
	for name, value := range change {
		sale[name] = value
	}
	s.put("sale", sale)
	return "/items/" + id
}

func (s *shopWindow) visitor(how visit) *visitor {
	s.t.Helper()
	return newVisitor(s.t, s.browser, s.base, how)
}

// on is the same system for another test.
func (s *shopWindow) on(t *testing.T) *shopWindow {
	t.Helper()
	own := *s.system
	own.t = t
	return &shopWindow{system: &own, browser: s.browser}
}

// TestBuyersInABrowser goes the buyers' ways with nothing but a browser. The
// whole system runs in one process; the ways share it and its browser.
func TestBuyersInABrowser(t *testing.T) {
	t.Parallel()
	shop := &shopWindow{browser: browserOf(t), system: oneProcess(t)}
	for name, way := range map[string]func(*shopWindow){ //nolint:paralleltest // they share two cores and a browser
		"buys, pays, cancels, is refunded": (*shopWindow).wholeJourney,
		"Chinese on a phone":               (*shopWindow).chineseOnAPhone,
		"sold out":                         (*shopWindow).soldOut,
		"reload at every step":             (*shopWindow).reloads,
		"two tabs":                         (*shopWindow).twoTabs,
		"before and after":                 (*shopWindow).outsideTheWindow,
		"too late":                         (*shopWindow).tooLate,
		"limit of several":                 (*shopWindow).several,
		"pages around":                     (*shopWindow).around,
		"trouble on the way":               (*shopWindow).trouble,
		"a ticket for work":                (*shopWindow).ticketForWork,
	} {
		t.Run(name, func(t *testing.T) {
			way(shop.on(t))
		})
	}
}

func (s *shopWindow) wholeJourney() {
	page := s.offer("journey", nil)
	v := s.visitor(visit{})
	v.open(page)
	v.reaches("ready", "The sale is open")
	v.looks("ready-en")
	s.light(v)
	v.click("buy")
	v.reaches("sign-in", "sign in first")
	v.looks("sign-in-en")
	v.signIn("journey-1")
	v.reaches("unpaid", "The order is yours") // the attempt went on by itself
	v.looks("unpaid-en")
	if left := v.text("#time-left"); left != "00:15:00" && !strings.HasPrefix(left, "00:14:") {
		s.t.Errorf("time left to pay: %q", left)
	}
	if amount := v.text("#order-amount"); amount != "99.00 CNY" {
		s.t.Errorf("amount %q", amount)
	}
	v.pays("twice", "0")
	v.reaches("paid", "Paid.")
	v.looks("paid-en")
	v.cancel()
	v.reaches("refunded", "Your money is back: 99.00 CNY") // within a sweep
	v.looks("refunded-en")
	v.click("buy")
	v.reaches("unpaid", "The order is yours")
	v.cancel()
	v.reaches("cancelled", "Nothing was charged")
	v.looks("cancelled-en")
	s.audit("journey")
}

// light fails if what the browser loaded for a page is not small.
func (s *shopWindow) light(v *visitor) {
	s.t.Helper()
	var bytes int
	var hosts []string
	v.do(chromedp.Evaluate(`[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
		.reduce((n, e) => n + e.transferSize, 0)`, &bytes), chromedp.Evaluate(`[...new Set(performance.getEntriesByType("resource")
		.map(e => new URL(e.name).origin))]`, &hosts))
	if bytes == 0 || bytes > 60_000 {
		s.t.Errorf("the page weighs %d bytes", bytes)
	}
	if len(hosts) != 1 || hosts[0] != s.base {
		s.t.Errorf("it loads from %v", hosts)
	}
	s.t.Logf("the page weighs %d bytes", bytes)
}

// audit fails unless every law holds for a sale.
func (s *shopWindow) audit(sale string) {
	s.t.Helper()
	s.seckillctl("audit", sale)
}

func (s *shopWindow) chineseOnAPhone() {
	page := s.offer("phone", nil)
	v := s.visitor(visit{lang: "zh-CN,zh;q=0.9,en;q=0.8", width: 360, height: 740}).signedIn("phone-1", page)
	v.reaches("ready", "抢购进行中")
	v.looks("ready-zh-phone")
	v.click("buy")
	v.reaches("unpaid", "订单已生成")
	v.looks("unpaid-zh-phone")
	var fits bool
	v.do(chromedp.Evaluate(`document.documentElement.scrollWidth <= innerWidth && document.getElementById("pay").getBoundingClientRect().height >= 48`, &fits))
	if !fits {
		s.t.Error("the page does not fit a phone")
	}
	v.do(chromedp.Click(`a[hreflang="en"]`, chromedp.ByQuery), chromedp.WaitVisible(`html[lang="en"] #sale`, chromedp.ByQuery))
	v.reaches("unpaid", "The order is yours")
	v.pays("once", "0")
	v.reaches("paid", "支付成功")
	v.looks("paid-zh-phone")
}

func (s *shopWindow) soldOut() {
	page := s.offer("rare", map[string]any{"units": 1})
	first := s.visitor(visit{}).signedIn("rare-1", page)
	first.click("buy")
	first.reaches("unpaid", "The order is yours")
	second := s.visitor(visit{}).signedIn("rare-2", page)
	second.reaches("ready", "Sold out")
	second.click("buy") // what the page shows may be old: asking is allowed
	second.reaches("refused", "Sold out")
	second.looks("sold-out-en")
	first.cancel()
	first.reaches("cancelled", "Nothing was charged")
	second.reaches("ready", "The sale is open") // by itself
	second.click("buy")
	second.reaches("unpaid", "The order is yours")
	s.audit("rare")
}

func (s *shopWindow) reloads() {
	page := s.offer("reload", nil)
	v := s.visitor(visit{}).signedIn("reload-1", page)
	v.do(chromedp.Evaluate(`document.getElementById("buy").click()`, nil), chromedp.Reload()) // no answer was waited for
	v.reaches("unpaid", "The order is yours")
	order := v.text("#order-id")
	v.reload()
	v.reaches("unpaid", "The order is yours")
	v.click("pay")
	v.do(chromedp.WaitVisible("#as", chromedp.ByQuery), chromedp.Evaluate(`history.back()`, nil))
	v.comesBackTo("unpaid")
	v.reload()
	v.reaches("unpaid", "The order is yours")
	v.do(chromedp.Evaluate(`localStorage.clear()`, nil), chromedp.Reload(), chromedp.WaitVisible("#sale", chromedp.ByQuery))
	v.reaches("ready", "The sale is open") // the browser forgot; the shop did not
	v.click("buy")
	v.reaches("unpaid", "The order is yours")
	if again := v.text("#order-id"); again != order {
		s.t.Errorf("order %s became %s", order, again)
	}
	v.pays("disordered", "0")
	v.reaches("paid", "Paid.")
	v.reload()
	v.reaches("paid", "Paid.")
	v.cancel()
	v.reload()
	v.reaches("refunded", "Your money is back")
	v.reload()
	v.reaches("refunded", "Your money is back")
	s.audit("reload")
}

func (s *shopWindow) twoTabs() {
	page := s.offer("tabs", nil)
	one := s.visitor(visit{}).signedIn("tabs-1", page)
	two := one.tab(visit{})
	two.open(page)
	two.reaches("ready", "The sale is open")
	one.click("buy")
	one.reaches("unpaid", "The order is yours")
	two.reaches("unpaid", "The order is yours") // by itself
	if a, b := one.text("#order-id"), two.text("#order-id"); a != b {
		s.t.Errorf("two orders: %s and %s", a, b)
	}
	one.pays("once", "0")
	one.reaches("paid", "Paid.")
	two.reaches("paid", "Paid.")
	s.audit("tabs")
}

func (s *shopWindow) outsideTheWindow() {
	opens := time.Now().Add(12 * time.Second)
	page := s.offer("soon", map[string]any{"opens_at": opens.Format(time.RFC3339)})
	v := s.visitor(visit{}).signedIn("soon-1", page)
	v.reaches("ready", "not opened yet")
	v.looks("not-open-en")
	if count := v.text("#countdown"); !strings.HasPrefix(count, "Opens in 00:00:") {
		s.t.Errorf("countdown %q", count)
	}
	v.do(chromedp.WaitEnabled("#buy", chromedp.ByQuery))
	if early := time.Until(opens.Truncate(time.Second)); early > time.Second {
		s.t.Errorf("the button works %s too early", early)
	}
	v.click("buy")
	v.reaches("unpaid", "The order is yours")

	over := s.offer("over", map[string]any{"closes_at": time.Now().Add(-time.Second).Format(time.RFC3339)})
	v = s.visitor(visit{}).signedIn("over-1", over)
	v.reaches("ready", "The sale is over")
	v.looks("closed-en")
}

func (s *shopWindow) tooLate() {
	page := s.offer("late", map[string]any{"pay_window": "12s"})
	v := s.visitor(visit{}).signedIn("late-1", page)
	v.click("buy")
	v.reaches("unpaid", "The order is yours")
	v.reaches("expired", "The time to pay is over")
	v.looks("expired-en")
	v.click("buy")
	v.reaches("unpaid", "The order is yours")
	v.pays("once", "13") // the shop hears of it when the order is expired
	v.reaches("expired", "It is back: 99.00 CNY")
	v.looks("late-money-en")
	s.audit("late")
}

func (s *shopWindow) several() {
	page := s.offer("several", map[string]any{"limit": 3})
	v := s.visitor(visit{}).signedIn("several-1", page)
	v.do(chromedp.SetValue("#quantity", "2", chromedp.ByQuery))
	v.click("buy")
	v.reaches("unpaid", "The order is yours")
	if amount := v.text("#order-amount"); amount != "198.00 CNY" {
		s.t.Errorf("amount %q", amount)
	}
	other := s.visitor(visit{}).signedIn("several-1", page) // the same buyer elsewhere
	other.do(chromedp.SetValue("#quantity", "2", chromedp.ByQuery))
	other.click("buy")
	other.reaches("refused", "your limit")
	other.looks("limit-en")
	v.pays("double", "0")
	v.reaches("paid", "Money that came twice is back: 198.00 CNY")
	v.looks("paid-twice-en")
	s.audit("several")
}

func (s *shopWindow) around() {
	v := s.visitor(visit{})
	v.open("/items")
	v.looks("list-en")
	if title := v.text("h1"); title != "All sales" {
		s.t.Errorf("title %q", title)
	}
	v.open("/items/nothing-here")
	v.looks("not-found-en")
	if title := v.text("h1"); title != "There is no such page" {
		s.t.Errorf("title %q", title)
	}
	for _, path := range []string{"/items/demo", "/items", "/items/nothing-here"} {
		for accept, kind := range map[string]string{"": "json", "*/*": "json", "application/json": "json", "text/html,*/*;q=0.8": "text/html"} {
			r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+path, http.NoBody)
			must(s.t, err)
			if accept != "" {
				r.Header.Set("Accept", accept)
			}
			response, err := s.client.Do(r)
			must(s.t, err)
			_ = response.Body.Close()
			if got := response.Header.Get("Content-Type"); !strings.Contains(got, kind) {
				s.t.Errorf("%s asked with %q is %q", path, accept, got)
			}
		}
	}
}

// trouble answers the first claims with 503, 429 and nothing at all: the page
// asks again with the same key until it knows.
func (s *shopWindow) trouble() {
	page := s.offer("trouble", nil)
	v := s.visitor(visit{}).signedIn("trouble-1", page)
	v.reaches("ready", "The sale is open")
	v.do(chromedp.Evaluate(`{
		const real = window.fetch, answers = [503, 429, 0, 502];
		window.keys = new Set();
		window.fetch = (path, options = {}) => {
			if (options.method !== "POST") return real(path, options);
			window.keys.add(options.headers["Idempotency-Key"]);
			if (!answers.length) return real(path, options);
			const status = answers.shift();
			if (!status) return real(path, options).then(() => { throw new TypeError("cut off"); });
			return Promise.resolve(new Response("<h1>gateway</h1>", {status, headers: {"Retry-After": "1"}}));
		};
	}`, nil))
	v.click("buy")
	v.reaches("claiming", "We keep asking for you")
	v.looks("retrying-en")
	v.reaches("unpaid", "The order is yours")
	var keys int
	v.do(chromedp.Evaluate(`window.keys.size`, &keys))
	if keys != 1 {
		s.t.Errorf("%d keys for one attempt", keys)
	}
	if report := s.seckillctl("audit", "trouble"); !strings.Contains(report, fmt.Sprintf(`"unpaid": %d`, 1)) {
		s.t.Errorf("audit %s", report)
	}
}
