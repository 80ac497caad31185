package main_test

import (
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// ticketForWork buys in a sale that asks for work: the page does it by itself,
// and a claim that comes without is refused.
func (s *shopWindow) ticketForWork() {
	page := s.offer("work", map[string]any{"ticket": "work", "units": 1})
	v := s.visitor(visit{}).signedIn("work-1", page)
	v.reaches("ready", "The sale is open")
	var code string
	v.do(chromedp.Evaluate(`fetch("/sales/work/claims", {method: "POST", body: '{"quantity":1}', headers: {"Content-Type": "application/json"}})
		.then(r => r.json()).then(d => d.code)`, &code, awaited))
	if code != "ticket_required" {
		s.t.Errorf("a claim without a ticket is answered %q", code)
	}
	v.do(chromedp.Evaluate(`Object.defineProperty(crypto, "subtle", {value: undefined, configurable: true}); undefined`, nil))
	v.click("buy") // as if the page had come over plain http
	v.reaches("refused", "open this page over https")
	v.looks("insecure-en")
	v.reload()
	v.reaches("ready", "The sale is open")
	v.click("buy")
	v.reaches("unpaid", "The order is yours")
	v.reload()
	v.reaches("unpaid", "The order is yours")
	second := s.visitor(visit{lang: "zh-CN"}).signedIn("work-2", page)
	second.click("buy")
	second.reaches("refused", "已售罄")
	v.cancel()
	v.reaches("cancelled", "Nothing was charged")
	second.reaches("ready", "抢购进行中")
	second.click("buy")
	second.reaches("unpaid", "订单已生成")
	s.audit("work")
}

// awaited has an evaluation wait for its promise.
func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
