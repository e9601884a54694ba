package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Line is a line of a plot.
type Line struct {
	Name   string // a system, or a system and what it does
	Points []Point
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// LinesSVG returns a plot of lines in the style of all plots. x and y are the titles of the axes.
func LinesSVG(title, x, y string, lines []Line) []byte {
	least, most := math.Inf(1), 0.0
	var names []string
	var xs []float64
	for _, l := range lines {
		names = append(names, l.Name)
		for _, p := range l.Points {
			least, most = math.Min(least, p.Y), math.Max(most, p.Y)
			xs = append(xs, p.X)
		}
	}
	slices.Sort(xs)
	if xs = slices.Compact(xs); len(xs) == 0 {
		xs = []float64{1}
	}
	c := newCanvas(plotWidth, linesHeight, title)
	top := c.legend(names)
	sy := newScale(math.Max(least, 1), most, lineLogFactor, linesHeight-66, top)
	titles := &curve{x: x, y: y}
	sx := newXAxis(titles, xs)
	c.axes(titles, sx, sy, xs, top)
	for _, l := range lines {
		var path strings.Builder
		k := colour(l.Name)
		for i, p := range l.Points {
			px, py := sx.pixel(p.X), sy.pixel(p.Y)
			fmt.Fprintf(&path, "%s%.1f %.1f", []string{"M", "L"}[min(i, 1)], px, py)
			c.add(`<circle cx="%.1f" cy="%.1f" r="4" class="d%d"/>`, px, py, k)
		}
		c.add(`<path d="%s" class="line c%d"%s/>`, path.String(), k, dash(l.Name))
	}
	return c.end()
}
