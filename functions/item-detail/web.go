package itemdetail

import (
	"embed"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"seckill/shared/problem"
	"seckill/shared/seckill"
)

//go:embed web
var webFiles embed.FS

// pages are what a page looks like in each language, made when somebody asks.
type pages [languages]atomic.Pointer[rendered]

// Header values of the pages. Nothing comes from elsewhere, and nothing that
// is not a file of ours is run.
var (
	htmlType = []string{"text/html; charset=utf-8"}
	policy   = []string{"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"}
	varyPage = []string{"Accept, Accept-Encoding, Accept-Language"}
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

// servePage shows a document to a person.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request, d *document, p *page) {
	lang := languageOf(r.URL.Query().Get("lang"), r.Header["Accept-Language"])
	content := p.html[lang].Load()
	if content == nil {
		content = newRendered(h.web.render(d, p, lang))
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
	pageHeader(w)
	w.Header()["Cache-Control"] = []string{"no-store"}
	w.WriteHeader(status)
	_, _ = w.Write(h.web.notice(r.URL.Path, lang, what))
}
