package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// plot is one drawing.
type plot struct {
	file, title string // file is relative to the report
	svg         []byte
}

// plots are those of a scenario.
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
	plotWidth = 860
	barStep   = 32
	barHigh   = 20
	plotTop   = 62
	plotRight = 150 // room for the figure at the end of the longest bar
	barFactor = 300 // between bars that much apart a length says nothing: the axis is logarithmic
)

// bar is one system.
type bar struct {
	system string
	figure figure // in the metric's unit
}

// barPlot sets the systems against each other, the best first, and the floor as a line.
func (r Run) barPlot(s scenario, m metric) (plot, bool) {
	bars, floor := r.bars(s, m)
	if len(bars) == 0 {
		return plot{}, false
	}
	title := s.title + ": " + m.name
	left := 0.0
	least, most := math.Inf(1), floor
	for _, b := range bars {
		left = math.Max(left, 36+wide(b.system))
		least, most = math.Min(least, b.figure.least), math.Max(most, b.figure.most)
	}
	if floor > 0 {
		least = math.Min(least, floor)
	}
	bottom := float64(plotTop + barStep*len(bars))
	c := newCanvas(plotWidth, bottom+62, title)
	sc := newScale(least, most, barFactor, left, plotWidth-plotRight)
	axis := m.name
	if m.unit.name != "" {
		axis += ", " + m.unit.name
	}
	axis += map[bool]string{false: " (less is better)", true: " (more is better)"}[m.higher]
	if sc.log {
		axis += ", logarithmic"
	}
	for _, v := range sc.ticks {
		c.line(sc.at(v), plotTop-4, sc.at(v), bottom, "grid")
		c.text(sc.at(v), bottom+18, "soft", "middle", tick(v))
	}
	c.text((sc.from+sc.to)/2, bottom+44, "soft", "middle", axis)
	for i, b := range bars {
		c.bar(sc, b, plotTop+float64(i*barStep), m.unit)
	}
	c.line(sc.from, plotTop-4, sc.from, bottom, "axis")
	if floor > 0 {
		c.line(sc.at(floor), plotTop-8, sc.at(floor), bottom, "floor")
		c.text(sc.at(floor), plotTop-14, "floortext", "middle", fmt.Sprintf("floor: %s", number(floor)))
	}
	return plot{fmt.Sprintf("plots/%s-%s.svg", s.id, strings.ReplaceAll(m.id, "_", "-")), title, c.end()}, true
}

// bars are the systems, the best first, and the floor's median, 0 for none.
func (r Run) bars(s scenario, m metric) (bars []bar, floor float64) {
	for _, system := range r.systems(s.id) {
		f, ok := summary(r.values(s.id, system, m.id, 0))
		if !ok {
			continue
		}
		f = figure{f.median * m.unit.scale, f.least * m.unit.scale, f.most * m.unit.scale}
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

// bar draws one: its name, its length, its range and its figure.
func (c *canvas) bar(sc scale, b bar, y float64, u unit) {
	class, name := "peer", ""
	if ours(b.system) {
		class, name = "ours", "bold"
	}
	c.text(sc.from-10, y+15, name, "end", b.system)
	c.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%d" rx="2" class="%s"/>`,
		sc.from, y, math.Max(1, sc.at(b.figure.median)-sc.from), barHigh, class)
	end := sc.at(b.figure.median)
	if b.figure.least < b.figure.most {
		low, high, middle := sc.at(b.figure.least), sc.at(b.figure.most), y+barHigh/2
		c.line(low, middle, high, middle, "range")
		c.line(low, middle-4, low, middle+4, "range")
		c.line(high, middle-4, high, middle+4, "range")
		end = high
	}
	c.text(end+8, y+15, name, "start", strings.TrimSpace(number(b.figure.median)+" "+u.name))
}
