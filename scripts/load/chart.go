package main

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// chart is one plot over time, drawn as SVG.
type chart struct {
	Title  string
	Series []series // those with a name in the legend
	SVG    template.HTML

	lines []series // all of them
	time  bool     // values are seconds, on a logarithmic scale
}

// series is one line of a chart.
type series struct {
	Name  string
	Color int

	dashed  bool
	unnamed bool // another series of this colour has the name
	xs, ys  []float64
}

func (s *series) add(x, y float64) { s.xs, s.ys = append(s.xs, x), append(s.ys, y) }

// keep takes a series unless it is nothing but zeros.
func (c *chart) keep(s series) {
	if !slices.ContainsFunc(s.ys, func(y float64) bool { return y > 0 }) {
		return
	}
	c.lines = append(c.lines, s)
	if !s.unnamed {
		c.Series = append(c.Series, s)
	}
}

// The drawing's size, in its own units: small enough that its text can be read
// on a phone.
const (
	chartWidth, chartHeight                          = 480.0, 240.0
	marginLeft, marginRight, marginTop, marginBottom = 52.0, 10.0, 8.0, 24.0
)

// drawn returns the chart with its drawing.
func (c chart) drawn() chart {
	if len(c.lines) == 0 {
		return c
	}
	d := c.drawing()
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %g %g" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(c.Title))
	for _, y := range d.ticks {
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/>`, marginLeft, chartWidth-marginRight, d.y(y), d.y(y))
		fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end">%s</text>`, marginLeft-6, d.y(y)+4, d.label(y))
	}
	for _, x := range steps(d.xMax, 6) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%g" text-anchor="middle">%gs</text>`, d.x(x), chartHeight-6, x)
	}
	for _, s := range c.lines {
		class := "series"
		if s.dashed {
			class += " dash"
		}
		fmt.Fprintf(&b, `<path class="%s" style="stroke:var(--c%d)" d="%s"/>`, class, s.Color, d.path(s))
	}
	b.WriteString(`</svg>`)
	c.SVG = template.HTML(b.String()) //nolint:gosec // made of numbers and escaped text
	return c
}

// drawing maps values to places.
type drawing struct {
	time       bool
	xMax       float64
	yMin, yMax float64 // of a logarithmic scale: their exponents of ten
	ticks      []float64
}

func (c chart) drawing() drawing {
	d := drawing{time: c.time, xMax: 1}
	low, high := math.Inf(1), 0.0
	for _, s := range c.lines {
		d.xMax = max(d.xMax, slices.Max(s.xs))
		for _, y := range s.ys {
			high = max(high, y)
			if y > 0 {
				low = min(low, y)
			}
		}
	}
	if !c.time {
		d.ticks = steps(high*1.05, 5)
		d.yMax = max(high*1.05, d.ticks[len(d.ticks)-1])
		return d
	}
	d.yMin, d.yMax = math.Floor(math.Log10(low)), math.Ceil(math.Log10(high*1.01))
	for e := d.yMin; e <= d.yMax; e++ {
		d.ticks = append(d.ticks, math.Pow(10, e))
	}
	return d
}

// steps are round numbers from zero up to high, about n of them.
func steps(high float64, n int) []float64 {
	raw := max(high, 1e-9) / float64(n)
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := unit * 10
	for _, f := range []float64{1, 2, 5} {
		if unit*f >= raw {
			step = unit * f
			break
		}
	}
	var out []float64
	for i := 0; float64(i)*step <= high; i++ {
		out = append(out, float64(i)*step)
	}
	return out
}

func (d drawing) x(v float64) float64 {
	return marginLeft + v/d.xMax*(chartWidth-marginLeft-marginRight)
}

func (d drawing) y(v float64) float64 {
	if d.time {
		v = math.Log10(max(v, math.Pow(10, d.yMin)))
	}
	return chartHeight - marginBottom - (v-d.yMin)/max(d.yMax-d.yMin, 1e-9)*(chartHeight-marginTop-marginBottom)
}

// path joins the points; a time of zero is no value and leaves a gap.
func (d drawing) path(s series) string {
	var b strings.Builder
	pen := "M"
	for i := range s.xs {
		if d.time && s.ys[i] <= 0 {
			pen = "M"
			continue
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", pen, d.x(s.xs[i]), d.y(s.ys[i]))
		if pen == "M" { // so that a lone point is seen, too
			b.WriteString("h.01")
		}
		pen = "L"
	}
	return b.String()
}

func (d drawing) label(v float64) string {
	switch {
	case d.time:
		text, unit, _ := strings.Cut(short(time.Duration(math.Round(v*1e9))), " ")
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return text + " " + unit
		}
		return fmt.Sprintf("%g %s", n, unit)
	case v >= 1_000_000:
		return fmt.Sprintf("%gM", v/1_000_000)
	case v >= 1_000:
		return fmt.Sprintf("%gk", v/1_000)
	}
	return fmt.Sprintf("%g", v)
}
