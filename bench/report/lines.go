package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	linesHeight = 420
	linesLeft   = 84
	linesRight  = plotWidth - 40
	// lineLogFactor is the ratio of the highest to the lowest value above which the axis is
	// logarithmic.
	lineLogFactor = 30
)

// curvePlot draws a line for each system.
func (r Run) curvePlot(s scenario) (plot, bool) {
	m := metricOf(s.id, s.curve.metric)
	xs := r.xs(s.id, m.id)
	if len(xs) < 2 {
		return plot{}, false
	}
	least, most := math.Inf(1), 0.0
	var systems []string
	for _, system := range r.systems(s.id) {
		for _, x := range xs {
			if f, ok := newFigure(r.values(s.id, system, m.id, x)); ok {
				least, most = math.Min(least, f.min*m.unit.scale), math.Max(most, f.max*m.unit.scale)
				if !slices.Contains(systems, system) {
					systems = append(systems, system)
				}
			}
		}
	}
	c := newCanvas(plotWidth, linesHeight, s.title)
	top := c.legend(systems)
	y := newScale(least, most, lineLogFactor, linesHeight-66, top)
	x := newXAxis(s.curve, xs)
	c.axes(s.curve, x, y, xs, top)
	for _, system := range systems {
		c.curve(r, s, m, system, xs, x, y)
	}
	return plot{fmt.Sprintf("plots/%s.svg", s.id), s.title, c.end()}, true
}

// xAxis maps the points of a curve to pixels.
type xAxis struct {
	curve *curve
	scale scale
}

func newXAxis(c *curve, xs []float64) xAxis {
	a := xAxis{curve: c, scale: scale{from: linesLeft, to: linesRight}}
	a.scale.high = a.position(xs[len(xs)-1])
	if c.xIsPercentile {
		a.scale.low = a.position(xs[0])
	}
	return a
}

// position returns the value on the axis. For a percentile it is the number of nines.
func (a xAxis) position(x float64) float64 {
	if a.curve.xIsPercentile {
		return -math.Log10(math.Max(1e-9, 1-x/100))
	}
	return x
}

func (a xAxis) pixel(x float64) float64 { return a.scale.pixel(a.position(x)) }

// axes draws the grid, the numbers and the titles.
func (c *canvas) axes(cv *curve, x xAxis, y scale, xs []float64, top float64) {
	bottom := y.from
	for _, v := range y.ticks {
		c.line(linesLeft, y.pixel(v), linesRight, y.pixel(v), "grid")
		c.text(linesLeft-8, y.pixel(v)+4.5, "soft", "end", tickLabel(v))
	}
	last := math.Inf(-1)
	for _, v := range xs {
		label := tickLabel(v)
		if cv.xIsPercentile {
			label = fmt.Sprintf("%g", v)
		}
		c.line(x.pixel(v), top, x.pixel(v), bottom, "grid")
		if half := textWidth(label) / 2; x.pixel(v)-half > last {
			c.text(x.pixel(v), bottom+18, "soft", "middle", label)
			last = x.pixel(v) + half + 6
		}
	}
	c.line(linesLeft, bottom, linesRight, bottom, "axis")
	c.line(linesLeft, top, linesLeft, bottom, "axis")
	c.text((linesLeft+linesRight)/2, bottom+44, "soft", "middle", cv.x)
	title := cv.y
	if y.log {
		title += " (logarithmic)"
	}
	c.add(`<text transform="translate(20 %.1f) rotate(-90)" class="soft" text-anchor="middle">%s</text>`, (top+bottom)/2, escape(title))
}

// legend draws the names of the systems in as many rows as needed, and returns the top of the plot.
func (c *canvas) legend(systems []string) (top float64) {
	x, y := float64(linesLeft), 50.0
	for _, system := range systems {
		if w := 40 + textWidth(system); x+w > linesRight && x > linesLeft {
			x, y = linesLeft, y+22
		}
		c.add(`<path d="M%.1f %.1fh24" class="line c%d"%s/>`, x, y-4, colour(system), dash(system))
		class := ""
		if isOurs(system) {
			class = "bold"
		}
		c.text(x+30, y, class, "start", system)
		x += 56 + textWidth(system)
	}
	return y + 22
}

// curve draws the medians as a line and the ranges as vertical bars.
func (c *canvas) curve(r Run, s scenario, m metric, system string, xs []float64, x xAxis, y scale) {
	var path strings.Builder
	k := colour(system)
	for _, v := range xs {
		f, ok := newFigure(r.values(s.id, system, m.id, v))
		if !ok {
			continue
		}
		verb := "L"
		if path.Len() == 0 {
			verb = "M"
		}
		px, py := x.pixel(v), y.pixel(f.median*m.unit.scale)
		fmt.Fprintf(&path, "%s%.1f %.1f", verb, px, py)
		if f.min < f.max {
			c.add(`<path d="M%.1f %.1fV%.1f" class="c%d" stroke-width="1.5" opacity=".6"/>`,
				px, y.pixel(f.min*m.unit.scale), y.pixel(f.max*m.unit.scale), k)
		}
		c.add(`<circle cx="%.1f" cy="%.1f" r="4" class="d%d"/>`, px, py, k)
	}
	c.add(`<path d="%s" class="line c%d"%s/>`, path.String(), k, dash(system))
}

// colour returns the class of a system's colour. It is the same in all plots and for all variants.
func colour(system string) int {
	if isOurs(system) {
		return 0
	}
	name, _, _ := strings.Cut(system, " ")
	if i := slices.Index([]string{"centrifuge", "nchan", "mosquitto", "socket.io"}, name); i >= 0 {
		return i + 1
	}
	return 5
}

// dashes distinguish the variants of a system, which share one colour.
var dashes = map[string]string{
	"switchboard ws": "7 4", "switchboard http": "2 4", "switchboard sse": "1 3", "switchboard tcp queue": "12 4 2 4",
	"switchboard memory": "4 3", "switchboard memory queue": "4 3 1 3",
	"centrifuge memory": "4 3", "mosquitto qos 0": "2 4",
	"switchboard start": "7 4", "switchboard end": "2 4", "centrifuge start": "7 4", "centrifuge end": "2 4",
}

// dash returns the dash attribute of a variant, "" for none.
func dash(system string) string {
	if pattern, ok := dashes[system]; ok {
		return fmt.Sprintf(` stroke-dasharray="%s"`, pattern)
	}
	return ""
}
