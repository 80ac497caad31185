package itemdetail

import (
	"html"
	"strings"
)

// markup is HTML. Text becomes markup by escape alone, so whatever an operator
// wrote shows as he wrote it.
type markup string

func escape(text string) markup { return markup(html.EscapeString(text)) }

// values fill the holes of a fragment.
type values map[string]markup

// plain returns values of texts that are no markup yet, given as name and text
// in turn.
func plain(pairs ...string) values {
	v := make(values, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		v[pairs[i]] = escape(pairs[i+1])
	}
	return v
}

// fragments are the pieces of the pages: each begins with a line "## name".
// A hole is {{name}}, in text or between double quotes, the two places where
// escape is enough. It is no html/template: that keeps the linker from leaving
// out any method of any package, and makes the function nearly twice as large.
var fragments = func() map[string]string {
	text, err := webFiles.ReadFile("web/sale.html")
	if err != nil {
		panic(err) // the file was embedded
	}
	all := map[string]string{}
	for piece := range strings.SplitSeq("\n"+string(text), "\n## ") {
		name, body, _ := strings.Cut(piece, "\n")
		all[name] = strings.Trim(body, "\n")
	}
	return all
}()

// fill returns a fragment with its holes filled, from v or else from words,
// the page's texts; a hole that neither knows stays empty.
func fill(name string, v values, words map[string]string) markup {
	var b strings.Builder
	rest := fragments[name]
	for {
		before, after, found := strings.Cut(rest, "{{")
		b.WriteString(before)
		if !found {
			return markup(b.String())
		}
		hole, next, _ := strings.Cut(after, "}}")
		value, ok := v[hole]
		if !ok {
			value = escape(words[hole])
		}
		b.WriteString(string(value))
		rest = next
	}
}

// join fills a fragment once for each of many values.
func join(name string, many []values, words map[string]string) markup {
	var b strings.Builder
	for _, v := range many {
		b.WriteString(string(fill(name, v, words)))
		b.WriteByte('\n')
	}
	return markup(b.String())
}
