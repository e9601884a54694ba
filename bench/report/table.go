package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints the targets and the figures of each scenario for a terminal.
func Table(w io.Writer, r Run) {
	if r.Quick {
		fmt.Fprintln(w, quickNote)
		fmt.Fprintln(w)
	}
	tabs := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...string) {
		fmt.Fprintln(tabs, strings.TrimRight(strings.ReplaceAll(strings.Join(cells, "\t"), "**", ""), "\t"))
	}
	line(targetHead...)
	for _, v := range r.evaluate() {
		line(v.cells()...)
	}
	_ = tabs.Flush() // errors of w are ignored, as for Fprintln
	for _, s := range r.scenarios() {
		fmt.Fprintf(w, "\n%s (%s)\n", s.title, s.id)
		for _, row := range r.rows(s) {
			line(row...)
		}
		_ = tabs.Flush()
	}
	for _, text := range r.Invalid {
		fmt.Fprintf(w, "\ndid not count: %s\n", text)
	}
}

const quickNote = "A quick run with fewer connections and rounds. The targets are meant for full runs."

var targetHead = []string{"work", "best peer in this run", "target", "measured", "range", ""}

// cells returns the table row of a target.
func (v verdict) cells() []string {
	best := "–"
	if v.bestPeer != "" {
		best = fmt.Sprintf("%s %s", v.bestPeer, v.bestFigure.format(v.metricUnit))
	}
	if !v.measured {
		return []string{v.Work, best, v.limitText(), "–", "–", v.outcome()}
	}
	measured := v.figure.format(v.unit)
	if v.RatioTo != "" || v.RatioToX != 0 {
		measured += fmt.Sprintf(" (%s)", v.absolute.format(v.metricUnit))
	}
	span := v.figure.rangeText(v.unit)
	if span == "" {
		span = "–"
	}
	return []string{v.Work, best, v.limitText(), measured, span, v.outcome()}
}

// rows returns the table of a scenario with its head first. A curve has a row for each point.
func (r Run) rows(s scenario) [][]string {
	if s.curve != nil {
		return r.curveRows(s)
	}
	head := []string{"system"}
	for _, m := range s.metrics {
		head = append(head, m.name)
		if !m.neutral {
			head = append(head, "× ours")
		}
	}
	rows := [][]string{head}
	for _, system := range r.systems(s.id) {
		row := []string{system}
		for _, m := range s.metrics {
			row = append(row, r.cells(s, system, m, 0)...)
		}
		rows = append(rows, row)
	}
	return rows
}

// reference returns one of our systems, with which the given system is compared. It prefers one
// with the same kind of store, memory or Redis.
func (r Run) reference(scenario, system string) (first string) {
	for _, own := range r.systems(scenario) {
		switch {
		case !isOurs(own):
		case inMemory(own) == inMemory(system):
			return own
		case first == "":
			first = own
		}
	}
	return first
}

// cells returns a figure and its ratio to our reference. A neutral metric has no ratio.
func (r Run) cells(s scenario, system string, m metric, x float64) []string {
	values := r.values(s.id, system, m.id, x)
	f, ok := newFigure(values)
	text, relative := "–", "–"
	if ok {
		text = f.withRange(m.unit)
	}
	if m.neutral {
		return []string{text}
	}
	if own := r.reference(s.id, system); own == system && ok {
		relative = "1"
	} else if q, ok := ratio(values, r.values(s.id, own, m.id, x)); ok {
		relative = formatNumber(q.median)
	}
	return []string{text, relative}
}

// curveRows returns a table for each metric, with a column for each system.
func (r Run) curveRows(s scenario) [][]string {
	systems := r.systems(s.id)
	var rows [][]string
	for _, m := range s.metrics {
		rows = append(rows, append([]string{s.curve.headCell(m)}, systems...))
		for _, x := range r.xs(s.id, m.id) {
			row := []string{s.curve.pointName(x)}
			for _, system := range systems {
				f, ok := newFigure(r.values(s.id, system, m.id, x))
				if !ok {
					row = append(row, "–")
					continue
				}
				row = append(row, f.withRange(m.unit))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// headCell returns the head of the column of points.
func (c *curve) headCell(m metric) string {
	if c.xIsPercentile {
		return m.name
	}
	return m.name + ", by " + c.x
}

// pointName returns the name of a point on the x axis.
func (c *curve) pointName(x float64) string {
	switch {
	case x == 0: // a metric of the whole curve
		return "all"
	case c.xIsPercentile:
		return fmt.Sprintf("p%g", x)
	}
	return Thousands(int64(x))
}

// pointName returns the name of a point. A scenario that is not in the catalog has only the number.
func (s scenario) pointName(x float64) string {
	if s.curve == nil {
		return fmt.Sprint(x)
	}
	return s.curve.pointName(x)
}
