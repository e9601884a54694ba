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
	for _, v := range r.judge() {
		line(v.cells()...)
	}
	_ = tabs.Flush() // as the Fprintlns: an error of w is not ours to tell
	for _, s := range r.known() {
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

const quickNote = "A quick run: fewer connections and rounds than the targets are about."

var targetHead = []string{"work", "best peer in this run", "target", "measured", "range", ""}

// cells are the row of a target.
func (v verdict) cells() []string {
	best := "–"
	if v.best != "" {
		best = fmt.Sprintf("%s %s", v.best, v.bestOf.in(v.ownUnit))
	}
	if !v.measured {
		return []string{v.Work, best, v.bar(), "–", "–", v.outcome()}
	}
	measured := v.figure.in(v.unit)
	if v.Over != "" || v.OverX != 0 {
		measured += fmt.Sprintf(" (%s)", v.own.in(v.ownUnit))
	}
	span := v.figure.span(v.unit)
	if span == "" {
		span = "–"
	}
	return []string{v.Work, best, v.bar(), measured, span, v.outcome()}
}

// rows are the table of a scenario, its head first. A curve has a row for each of its points.
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
			row = append(row, r.cellsOf(s, system, m, 0)...)
		}
		rows = append(rows, row)
	}
	return rows
}

// reference is the row of ours that a system is set against: the first that keeps its messages
// in the same place, in memory or in Redis, or else the first.
func (r Run) reference(scenario, system string) (first string) {
	for _, own := range r.systems(scenario) {
		switch {
		case !ours(own):
		case inMemory(own) == inMemory(system):
			return own
		case first == "":
			first = own
		}
	}
	return first
}

// cellsOf are a figure and, unless neither way is better, its ratio to ours.
func (r Run) cellsOf(s scenario, system string, m metric, x float64) []string {
	values := r.values(s.id, system, m.id, x)
	f, ok := summary(values)
	text, against := "–", "–"
	if ok {
		text = f.ranged(m.unit)
	}
	if m.neutral {
		return []string{text}
	}
	if own := r.reference(s.id, system); own == system && ok {
		against = "1"
	} else if q, ok := ratio(values, r.values(s.id, own, m.id, x)); ok {
		against = number(q.median)
	}
	return []string{text, against}
}

// curveRows have a column for each system of the curve, then a line for each other metric.
func (r Run) curveRows(s scenario) [][]string {
	systems := r.systems(s.id)
	var rows [][]string
	for _, m := range s.metrics {
		rows = append(rows, append([]string{s.curve.head(m)}, systems...))
		for _, x := range r.xs(s.id, m.id) {
			row := []string{s.curve.point(x)}
			for _, system := range systems {
				f, ok := summary(r.values(s.id, system, m.id, x))
				if !ok {
					row = append(row, "–")
					continue
				}
				row = append(row, f.ranged(m.unit))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// head is what stands above the points.
func (c *curve) head(m metric) string {
	if c.percentile {
		return m.name
	}
	return m.name + ", by " + c.x
}

// point names a point of the x axis.
func (c *curve) point(x float64) string {
	switch {
	case x == 0:
		return "all"
	case c.percentile:
		return fmt.Sprintf("p%g", x)
	}
	return thousands(int64(x))
}

// point is that of the curve; a scenario that the catalog does not know has none.
func (s scenario) point(x float64) string {
	if s.curve == nil {
		return fmt.Sprint(x)
	}
	return s.curve.point(x)
}
