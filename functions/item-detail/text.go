package itemdetail

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The languages of the page, in the order of preference when a reader names
// none.
const (
	english = iota
	chinese
	languages
)

// langNames are the languages' names in ?lang=.
var langNames = [languages]string{"en", "zh"}

// texts are all words of the pages. Those under "say." are what the script
// tells the buyer; each state, refusal and reason has one.
var texts = [languages]map[string]string{english: {
	"lang": "en", "other_lang": "zh", "other_name": "中文", "skip": "Skip to the sale", "nav": "Site",
	"all_sales": "All sales", "other_sales": "Other sales", "no_sale": "There is no sale at the moment.",
	"opens": "Opens", "closes": "Closes", "left": "Units left", "unknown": "not known", "limit_is": "Limit for each buyer:",
	"order": "Order", "quantity": "Quantity", "amount": "Amount", "time_left": "Time left to pay",
	"buy": "Buy now", "pay": "Pay", "cancel": "Cancel the order", "sign_in": "Sign in",
	"noscript":  "Buying needs JavaScript.",
	"not_found": "There is no such page", "not_found_text": "Nothing is sold here. See all sales.",
	"unavailable": "Not available right now", "unavailable_text": "We are in trouble, not you. Please try again in a moment.",
	"scheduled": "not open yet", "open": "open", "paused": "paused", "closed": "over", "sold_out": "sold out",

	"say.wait":                   "The sale has not opened yet. The button works the moment it does.",
	"say.ready":                  "The sale is open.",
	"say.preparing":              "Getting your entry ticket…",
	"say.claiming":               "Asking for your unit… You need not press again.",
	"say.retrying":               "Many people are asking. We keep asking for you; you lose nothing.",
	"say.held":                   "Your unit is held. The order is being created…",
	"say.unpaid":                 "The order is yours. Please pay before the time runs out.",
	"say.paying":                 "Opening the payment…",
	"say.paid":                   "Paid. Thank you, it is yours.",
	"say.cancelling":             "Cancelling…",
	"say.cancelled":              "The order is cancelled. Nothing was charged.",
	"say.expired":                "The time to pay is over, so the unit went back on sale. Should money of yours still come, it goes back to you.",
	"say.refunding":              "The order is cancelled. Your money is on its way back: {amount}.",
	"say.refunded":               "Your money is back: {amount}.",
	"say.late_due":               "Your payment came when this order could not be paid any more. It is on its way back: {amount}.",
	"say.late_done":              "Your payment came when this order could not be paid any more. It is back: {amount}.",
	"say.twice_due":              "Paid. Money that came twice is on its way back: {amount}.",
	"say.twice_done":             "Paid. Money that came twice is back: {amount}.",
	"say.sold_out":               "Sold out. Units that are not paid for come back, so it can be worth looking again.",
	"say.limit_reached":          "With this you would pass your limit in this sale.",
	"say.not_open":               "The sale has not opened yet.",
	"say.closed":                 "The sale is over.",
	"say.paused":                 "The sale is paused. Nothing is lost; please wait.",
	"say.unavailable":            "We cannot tell right now whether it worked. Press again: you never get a second one by that.",
	"say.unauthenticated":        "Please sign in first.",
	"say.entry":                  "Your entry ticket is not accepted. Please press again.",
	"say.insecure":               "To buy here, open this page over https: without it your browser cannot work out the entry ticket.",
	"say.invalid":                "This quantity is not possible.",
	"say.not_found":              "There is no such sale.",
	"say.rejected":               "The order could not be created, and nothing was charged.",
	"say.rejected_sold_out":      "All units are gone after all, so no order was created. Nothing was charged.",
	"say.rejected_limit_reached": "You hold your limit already, so no second order was created. Nothing was charged.",
	"say.rejected_cancelled":     "Cancelled before the order was created. Nothing was charged.",
	"say.released":               "The unit went back on sale. Nothing was charged.",
	"say.opens_in":               "Opens in {time}",
	"say.closes_in":              "Closes in {time}",
	"say.buy":                    "Buy now",
	"say.buy_again":              "Buy again",
	"say.try_again":              "Ask again",
	"say.cancel":                 "Cancel the order",
	"say.refund":                 "Cancel and get the money back",
	"say.sure":                   "Press once more to cancel",
	"say.unknown":                "not known",
}, chinese: {
	"lang": "zh-CN", "other_lang": "en", "other_name": "English", "skip": "跳到抢购", "nav": "站点",
	"all_sales": "全部抢购", "other_sales": "其他场次", "no_sale": "目前没有抢购。",
	"opens": "开始", "closes": "结束", "left": "剩余", "unknown": "未知", "limit_is": "每人限购：",
	"order": "订单", "quantity": "数量", "amount": "金额", "time_left": "剩余支付时间",
	"buy": "立即抢购", "pay": "去支付", "cancel": "取消订单", "sign_in": "登录",
	"noscript":  "购买需要启用 JavaScript。",
	"not_found": "没有这个页面", "not_found_text": "这里没有商品，请查看全部抢购。",
	"unavailable": "暂时不可用", "unavailable_text": "是我们出了问题，不是您。请稍后再试。",
	"scheduled": "未开始", "open": "进行中", "paused": "已暂停", "closed": "已结束", "sold_out": "已售罄",

	"say.wait":                   "抢购还没有开始，开始的那一刻按钮即可使用。",
	"say.ready":                  "抢购进行中。",
	"say.preparing":              "正在领取入场凭证…",
	"say.claiming":               "正在为您抢购…请不要重复点击。",
	"say.retrying":               "人很多，我们在替您继续请求，您不会有任何损失。",
	"say.held":                   "已为您保留，正在生成订单…",
	"say.unpaid":                 "订单已生成，请在时间结束前支付。",
	"say.paying":                 "正在打开支付页面…",
	"say.paid":                   "支付成功，谢谢，商品是您的了。",
	"say.cancelling":             "正在取消…",
	"say.cancelled":              "订单已取消，没有扣款。",
	"say.expired":                "支付时间已过，商品已重新上架。如果您的付款之后到达，将会退还给您。",
	"say.refunding":              "订单已取消，退款正在处理：{amount}。",
	"say.refunded":               "退款已完成：{amount}。",
	"say.late_due":               "您的付款到达时，该订单已不能支付。退款正在处理：{amount}。",
	"say.late_done":              "您的付款到达时，该订单已不能支付。已退款：{amount}。",
	"say.twice_due":              "支付成功。重复的付款正在退回：{amount}。",
	"say.twice_done":             "支付成功。重复的付款已退回：{amount}。",
	"say.sold_out":               "已售罄。未支付的商品会重新上架，可以稍后再看。",
	"say.limit_reached":          "超出了您在本场的限购数量。",
	"say.not_open":               "抢购还没有开始。",
	"say.closed":                 "抢购已结束。",
	"say.paused":                 "抢购已暂停，您没有损失，请稍候。",
	"say.unavailable":            "暂时无法确认结果。请再点一次，不会因此重复下单。",
	"say.unauthenticated":        "请先登录。",
	"say.entry":                  "入场凭证未被接受，请再点一次。",
	"say.insecure":               "请通过 https 打开本页后购买，否则浏览器无法计算入场凭证。",
	"say.invalid":                "数量不正确。",
	"say.not_found":              "没有这场抢购。",
	"say.rejected":               "订单未能生成，没有扣款。",
	"say.rejected_sold_out":      "商品已全部售出，订单未能生成，没有扣款。",
	"say.rejected_limit_reached": "您已达到限购数量，没有生成第二个订单，没有扣款。",
	"say.rejected_cancelled":     "在订单生成前已取消，没有扣款。",
	"say.released":               "商品已重新上架，没有扣款。",
	"say.opens_in":               "距开始 {time}",
	"say.closes_in":              "距结束 {time}",
	"say.buy":                    "立即抢购",
	"say.buy_again":              "再次抢购",
	"say.try_again":              "再试一次",
	"say.cancel":                 "取消订单",
	"say.refund":                 "取消订单并退款",
	"say.sure":                   "再点一次确认取消",
	"say.unknown":                "未知",
}}

// sayings are the script's texts in each language.
var sayings = func() (all [languages][]values) {
	for lang, words := range texts {
		for _, key := range slices.Sorted(maps.Keys(words)) {
			if name, ok := strings.CutPrefix(key, "say."); ok {
				all[lang] = append(all[lang], plain("name", name, "text", words[key]))
			}
		}
	}
	return all
}()

// languageOf picks the language that a reader asked for by ?lang=, else the
// one that his browser prefers.
func languageOf(query string, accept []string) int {
	for lang, name := range langNames {
		if query == name {
			return lang
		}
	}
	best, quality := english, 0.0
	for _, value := range accept {
		for part := range strings.SplitSeq(value, ",") {
			tag, q := quantified(part)
			primary, _, _ := strings.Cut(strings.ToLower(tag), "-")
			lang := slices.Index(langNames[:], primary)
			if lang >= 0 && q > quality {
				best, quality = lang, q
			}
		}
	}
	return best
}

// quantified splits one part of an Accept header into its value and its
// quality, 0 if that cannot be read.
func quantified(part string) (value string, quality float64) {
	value, parameters, _ := strings.Cut(part, ";")
	quality = 1
	for parameter := range strings.SplitSeq(parameters, ";") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			quality, _ = strconv.ParseFloat(text, 64)
		}
	}
	return strings.TrimSpace(value), quality
}

// Currencies whose minor unit is not a hundredth (ISO 4217).
var (
	noDecimals    = []string{"BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF"}
	threeDecimals = []string{"BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"}
)

// amount writes minor units as people do.
func amount(minor int64, currency string) string {
	decimals := 2
	switch {
	case slices.Contains(noDecimals, currency):
		decimals = 0
	case slices.Contains(threeDecimals, currency):
		decimals = 3
	}
	digits := strconv.FormatInt(minor, 10)
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if decimals > 0 {
		digits = digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
	}
	return digits + " " + currency
}
