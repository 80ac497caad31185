package itemdetail

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

//go:embed web
var webFiles embed.FS

var webTemplates = template.Must(template.ParseFS(webFiles, "web/sale.html"))

// rendered is an answer ready to be written.
type rendered struct {
	body   []byte
	etag   []string
	length []string
}

func newRendered(body []byte) *rendered {
	sum := sha256.Sum256(body)
	return &rendered{
		body: body, etag: []string{`"` + hex.EncodeToString(sum[:16]) + `"`}, length: []string{strconv.Itoa(len(body))},
	}
}

// pages are what a page looks like in each language, made when somebody asks.
type pages [languages]atomic.Pointer[rendered]

// Header values of the pages. Nothing comes from elsewhere, and nothing that
// is not a file of ours is run.
var (
	htmlType = []string{"text/html; charset=utf-8"}
	policy   = []string{"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"}
	varyPage = []string{"Accept, Accept-Language"}
	nosniff  = []string{"nosniff"}
	referrer = []string{"same-origin"}
)

// wantsPage reports whether a browser asks, who shows the answer to a person.
func wantsPage(r *http.Request) bool {
	for _, value := range r.Header["Accept"] {
		for part := range strings.SplitSeq(value, ",") {
			kind, q := quantified(part)
			if q > 0 && (kind == "text/html" || kind == "application/json") {
				return kind == "text/html"
			}
		}
	}
	return false
}

// asset is a file of the pages; its name changes with its content.
type asset struct {
	path string
	kind []string
	*rendered
}

// assets are the pages' files by path. No SKU has a dot, so none can be one.
var assets = func() map[string]asset {
	all := map[string]asset{}
	for name, kind := range map[string]string{
		"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "icon.svg": "image/svg+xml",
	} {
		body, err := webFiles.ReadFile("web/" + name)
		if err != nil {
			panic(err) // the file was embedded
		}
		content := newRendered(body)
		stem, extension, _ := strings.Cut(name, ".")
		path := "/items/" + stem + "." + strings.Trim(content.etag[0], `"`)[:12] + "." + extension
		a := asset{path: path, kind: []string{kind}, rendered: content}
		all[path], all[name] = a, a
	}
	return all
}()

// immutable: an asset of this name never changes.
var immutable = []string{"public, max-age=31536000, immutable"}

// clockPath answers what the time is, in milliseconds.
const clockPath = "/items/clock.json"

// serveStatic answers for assets and the clock; false if it is neither.
func (h *Handler) serveStatic(w http.ResponseWriter, r *http.Request) bool {
	header := w.Header()
	if r.URL.Path == clockPath {
		header["Content-Type"], header["Cache-Control"] = jsonType, []string{"no-store"}
		_, _ = fmt.Fprintf(w, `{"now_ms":%d}`, h.now().UnixMilli())
		return true
	}
	a, ok := assets[r.URL.Path]
	if !ok {
		return false
	}
	header["Content-Type"], header["X-Content-Type-Options"] = a.kind, nosniff
	write(w, r, a.rendered, immutable)
	return true
}

// write answers with what is rendered, or that the reader has it.
func write(w http.ResponseWriter, r *http.Request, content *rendered, caching []string) {
	header := w.Header()
	header["Cache-Control"], header["Etag"] = caching, content.etag
	if match := r.Header["If-None-Match"]; len(match) > 0 && matches(match, content.etag[0]) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header["Content-Length"] = content.length
	_, _ = w.Write(content.body)
}

// servePage shows a document to a person.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request, d *document, p *page) {
	lang := languageOf(r.URL.Query().Get("lang"), r.Header["Accept-Language"])
	content := p.html[lang].Load()
	if content == nil {
		body, err := h.web.render(d, p, lang)
		if err != nil {
			slog.ErrorContext(r.Context(), "page not rendered", "path", r.URL.Path, "err", err)
			problem.Write(w, problem.Of(err))
			return
		}
		content = newRendered(body)
		p.html[lang].Store(content)
	}
	pageHeader(w)
	write(w, r, content, cacheControl)
}

func pageHeader(w http.ResponseWriter) {
	header := w.Header()
	header["Content-Type"], header["Content-Security-Policy"], header["Vary"] = htmlType, policy, varyPage
	header["X-Content-Type-Options"], header["Referrer-Policy"] = nosniff, referrer
}

// failPage tells a person that there is nothing, or that we are in trouble.
func (h *Handler) failPage(w http.ResponseWriter, r *http.Request, err error) {
	lang := languageOf(r.URL.Query().Get("lang"), r.Header["Accept-Language"])
	what, status := "unavailable", problem.Of(err).Status
	if errors.Is(err, errTooManyUnknown) {
		status = http.StatusTooManyRequests
	}
	if errors.Is(err, seckill.ErrNotFound) {
		what = "not_found"
	}
	v := h.web.view(r.URL.Path, lang)
	v.Title, v.Notice = v.Text[what], v.Text[what+"_text"]
	var body bytes.Buffer
	if err := webTemplates.ExecuteTemplate(&body, "notice", v); err != nil {
		problem.Write(w, problem.Of(err))
		return
	}
	pageHeader(w)
	w.Header()["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

// web renders pages.
type web struct {
	signIn string // where a buyer signs in, empty if the page cannot tell
}

// view is what a template shows.
type view struct {
	Lang, OtherLang       string
	Text                  map[string]string
	Title, Path           string
	Style, Script, Icon   string
	Clock, SignIn, Notice string
	Item                  seckill.Item
	Image                 string
	Sale                  *saleView
	Others                []saleView
	Items                 []itemView
	Says                  []saying
}

type itemView struct {
	Item  seckill.Item
	Sales []saleView
}

// saleView is a sale as a person reads it.
type saleView struct {
	ID, Price                            string
	State                                seckill.SaleState
	StateText, StockText                 string
	Opens, OpensText, Closes, ClosesText string
	OpensMS, ClosesMS, Units, Limit      int64
}

func (web web) view(path string, lang int) view {
	v := view{
		Lang: langNames[lang], OtherLang: langNames[1-lang], Text: texts[lang], Says: sayings[lang], Path: path,
		Style: assets["page.css"].path, Script: assets["page.js"].path, Icon: assets["icon.svg"].path, Clock: clockPath,
	}
	if web.signIn != "" {
		v.SignIn = web.signIn + "?back=" + url.QueryEscape(path)
	}
	return v
}

// render makes the page of a document with what p shows.
func (web web) render(d *document, p *page, lang int) ([]byte, error) {
	name, path := "list", "/items"
	if !d.list {
		name, path = "sale", "/items/"+d.details[0].Item.SKU
	}
	v := web.view(path, lang)
	v.Title = v.Text["all_sales"]
	for _, one := range d.details {
		v.Items = append(v.Items, itemView{one.Item, salesView(one.Sales, p, v.Text)})
	}
	if !d.list {
		one := d.details[0]
		v.Title, v.Item = one.Item.Name, one.Item
		if own := one.Item.ImageURL; strings.HasPrefix(own, "/") && !strings.HasPrefix(own, "//") {
			v.Image = own
		}
		if i := present(one.Sales, p.shownAt); i >= 0 {
			sales := v.Items[0].Sales
			v.Sale, v.Others = &sales[i], slices.Concat(sales[:i], sales[i+1:])
		}
	}
	var body bytes.Buffer
	if err := webTemplates.ExecuteTemplate(&body, name, v); err != nil {
		return nil, fmt.Errorf("render %s: %w", v.Path, err)
	}
	return body.Bytes(), nil
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

func salesView(sales []seckill.Sale, p *page, text map[string]string) []saleView {
	views := make([]saleView, len(sales))
	for i, s := range sales {
		state := s.State(p.shownAt)
		views[i] = saleView{
			ID: s.ID, Price: amount(s.PriceMinor, s.Currency), State: state, StateText: text[string(state)],
			Opens: s.OpensAt.Format(time.RFC3339), OpensText: s.OpensAt.Format("2006-01-02 15:04 MST"),
			Closes: s.ClosesAt.Format(time.RFC3339), ClosesText: s.ClosesAt.Format("2006-01-02 15:04 MST"),
			OpensMS: s.OpensAt.UnixMilli(), ClosesMS: s.ClosesAt.UnixMilli(), Units: s.Units, Limit: s.Limit,
		}
		if stock, known := p.stocks[s.ID]; known {
			views[i].StockText = strconv.FormatInt(max(stock, 0), 10)
			if stock <= 0 && state == seckill.SaleOpen {
				views[i].StateText = text["sold_out"]
			}
		}
	}
	return views
}
