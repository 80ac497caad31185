package main

import (
	_ "embed"
	"fmt"
	"html/template"
	"maps"
	"os"
	"slices"
	"time"
)

//go:embed report.html
var reportText string

var reportPage = template.Must(template.New("report").Parse(reportText))

// page is what the report's template shows.
type page struct {
	Scenario, What, Sale, At string
	Hold                     bool
	Tiles                    []tile
	Charts                   []chart
	Columns                  []string
	Rows                     [][]string
	Took, Rest               string
	Faults                   []string
	Laws                     []pageLaw
	Facts                    []tile
}

type tile struct{ Name, Value string }

type pageLaw struct {
	Name, Detail string
	Broken       bool
}

// writeReport writes the result as one HTML file that needs nothing else.
func writeReport(path string, r result) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := reportPage.Execute(file, newPage(r)); err != nil {
		_ = file.Close()
		return fmt.Errorf("write report: %w", err)
	}
	return file.Close()
}

func newPage(r result) page {
	p := page{
		Scenario: r.scenario.name, What: capital(r.scenario.what), Sale: r.sale, At: r.at.UTC().Format("2006-01-02 15:04 UTC"),
		Hold: r.hold(), Tiles: r.tiles(), Charts: r.charts(), Columns: columns, Rows: r.rows(), Took: short(r.took), Rest: short(r.rest),
	}
	for _, text := range slices.Sorted(maps.Keys(r.faults)) {
		p.Faults = append(p.Faults, fmt.Sprintf("%s (%s times)", text, thousands(r.faults[text])))
	}
	for _, l := range r.laws {
		p.Laws = append(p.Laws, pageLaw{capital(l.name), l.detail, l.broken})
	}
	for _, f := range r.facts {
		p.Facts = append(p.Facts, tile{capital(f.name), f.value})
	}
	return p
}

func capital(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}

// tiles are the numbers to see first.
func (r result) tiles() []tile {
	var tiles []tile
	total := int64(0)
	for _, k := range r.kinds {
		total += k.hist.TotalCount()
	}
	tiles = append(tiles, tile{"answers", thousands(total)}, tile{"answers a second", perSecond(float64(total), r.took)})
	for _, k := range r.kinds {
		if k.name == kindNames()[kindWon] {
			tiles = append(tiles, tile{"winners", thousands(k.hist.TotalCount())}, tile{"winners' p99", short(quantile(k.hist, 99))})
		}
	}
	if r.placed.orders > 0 {
		tiles = append(tiles, tile{"orders landed", thousands(r.placed.orders)},
			tile{"orders a second", thousands(int64(r.placed.rate))}, tile{"claim to order, p99", short(quantile(r.placed.lags.all, 99))})
	}
	return tiles
}

// charts are the plots for which there is anything to show.
func (r result) charts() []chart {
	charts := []chart{r.rateChart(), r.latencyChart(), r.stockChart(), r.lagChart()}
	return slices.DeleteFunc(charts, func(c chart) bool { return len(c.Series) == 0 })
}

func (r result) rateChart() chart {
	c := chart{Title: "Answers a second"}
	for i, g := range groups() {
		s := series{Name: g.name, Color: i}
		for _, p := range r.timeline.points {
			s.add(p.at, p.groups[i].rate)
		}
		c.keep(s)
	}
	return c.drawn()
}

func (r result) latencyChart() chart {
	c := chart{Title: "Time to the answer, from the planned arrival (p50 dashed, p99)", time: true}
	for i, g := range groups() {
		mid, high := series{Color: i, Name: g.name, dashed: true, unnamed: true}, series{Name: g.name, Color: i}
		for _, p := range r.timeline.points {
			mid.add(p.at, p.groups[i].p50.Seconds())
			high.add(p.at, p.groups[i].p99.Seconds())
		}
		c.keep(mid)
		c.keep(high)
	}
	return c.drawn()
}

func (r result) stockChart() chart {
	c := chart{Title: "Units over time"}
	opened := r.units.opened
	parts := []struct {
		name string
		of   func(units) int64
	}{
		{"stock", func(u units) int64 { return u.stock }},
		{"reserved", func(u units) int64 { return u.reserved }},
		{"live orders", func(u units) int64 {
			if u.available < 0 || opened < 0 {
				return -1
			}
			return opened - u.available
		}},
	}
	for i, part := range parts {
		s := series{Name: part.name, Color: i}
		for _, p := range r.timeline.stocks {
			if n := part.of(p.units); n >= 0 {
				s.add(p.at, float64(n))
			}
		}
		c.keep(s)
	}
	return c.drawn()
}

func (r result) lagChart() chart {
	c := chart{Title: "From the claim to its order, by the second of the claim", time: true}
	from := r.placed.lags
	if len(from.series) == 0 {
		c.Title, from = "From 202 to the result, as some buyers saw it", r.seen
	}
	names := []string{"p50", "p99", "max"}
	for i, of := range []func(lagPoint) time.Duration{
		func(p lagPoint) time.Duration { return p.p50 },
		func(p lagPoint) time.Duration { return p.p99 },
		func(p lagPoint) time.Duration { return p.max },
	} {
		s := series{Name: names[i], Color: i}
		for _, p := range from.series {
			s.add(float64(p.second), of(p).Seconds())
		}
		c.keep(s)
	}
	return c.drawn()
}
