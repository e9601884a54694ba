package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// plot is one SVG file.
type plot struct {
	file, title string // file is relative to the report
	svg         []byte
}

// plots returns the plots of a scenario.
func (r Run) plots(s scenario) (all []plot) {
	if s.curve != nil {
		if p, ok := r.curvePlot(s); ok {
			all = append(all, p)
		}
		return all
	}
	for _, m := range s.metrics {
		if m.plot {
			if p, ok := r.barPlot(s, m); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

const (
	plotWidth    = 860
	barStep      = 32
	barHeight    = 20
	plotTop      = 62
	plotRight    = 150 // space for the figure after the longest bar
	barLogFactor = 300 // above this ratio of the longest to the shortest bar the axis is logarithmic
)

// bar is the figure of one system.
type bar struct {
	system string
	figure figure // in the metric's unit
}

// barPlot draws a bar for each system, the best first, and the floor as a line.
func (r Run) barPlot(s scenario, m metric) (plot, bool) {
	bars, floor := r.bars(s, m)
	if len(bars) == 0 {
		return plot{}, false
	}
	title := s.title + ": " + m.name
	left := 0.0
	least, most := math.Inf(1), floor
	for _, b := range bars {
		left = math.Max(left, 36+textWidth(b.system))
		least, most = math.Min(least, b.figure.min), math.Max(most, b.figure.max)
	}
	if floor > 0 {
		least = math.Min(least, floor)
	}
	bottom := float64(plotTop + barStep*len(bars))
	c := newCanvas(plotWidth, bottom+62, title)
	sc := newScale(least, most, barLogFactor, left, plotWidth-plotRight)
	axis := m.name
	if m.unit.name != "" {
		axis += ", " + m.unit.name
	}
	axis += map[bool]string{false: " (less is better)", true: " (more is better)"}[m.higherIsBetter]
	if sc.log {
		axis += ", logarithmic"
	}
	for _, v := range sc.ticks {
		c.line(sc.pixel(v), plotTop-4, sc.pixel(v), bottom, "grid")
		c.text(sc.pixel(v), bottom+18, "soft", "middle", tickLabel(v))
	}
	c.text((sc.from+sc.to)/2, bottom+44, "soft", "middle", axis)
	for i, b := range bars {
		c.bar(sc, b, plotTop+float64(i*barStep), m.unit)
	}
	c.line(sc.from, plotTop-4, sc.from, bottom, "axis")
	if floor > 0 {
		c.line(sc.pixel(floor), plotTop-8, sc.pixel(floor), bottom, "floor")
		c.text(sc.pixel(floor), plotTop-14, "floortext", "middle", fmt.Sprintf("floor: %s", formatNumber(floor)))
	}
	return plot{fmt.Sprintf("plots/%s-%s.svg", s.id, strings.ReplaceAll(m.id, "_", "-")), title, c.end()}, true
}

// bars returns the systems, the best first, and the floor's median, 0 for none.
func (r Run) bars(s scenario, m metric) (bars []bar, floor float64) {
	for _, system := range r.systems(s.id) {
		f, ok := newFigure(r.values(s.id, system, m.id, 0))
		if !ok {
			continue
		}
		f = figure{f.median * m.unit.scale, f.min * m.unit.scale, f.max * m.unit.scale}
		if system == floorSystem {
			floor = f.median
			continue
		}
		bars = append(bars, bar{system, f})
	}
	slices.SortStableFunc(bars, func(a, b bar) int {
		switch {
		case m.better(a.figure.median, b.figure.median):
			return -1
		case m.better(b.figure.median, a.figure.median):
			return 1
		}
		return 0
	})
	return bars, floor
}

// bar draws one bar with the system's name, the range and the figure.
func (c *canvas) bar(sc scale, b bar, y float64, u unit) {
	class, name := "peer", ""
	if isOurs(b.system) {
		class, name = "ours", "bold"
	}
	c.text(sc.from-10, y+15, name, "end", b.system)
	c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" class="%s"/>`,
		sc.from, y, math.Max(1, sc.pixel(b.figure.median)-sc.from), barHeight, class)
	end := sc.pixel(b.figure.median)
	if b.figure.min < b.figure.max {
		low, high, middle := sc.pixel(b.figure.min), sc.pixel(b.figure.max), y+barHeight/2
		c.line(low, middle, high, middle, "range")
		c.line(low, middle-4, low, middle+4, "range")
		c.line(high, middle-4, high, middle+4, "range")
		end = high
	}
	c.text(end+8, y+15, name, "start", strings.TrimSpace(formatNumber(b.figure.median)+" "+u.name))
}
