// Package report writes the results of the benchmark suite as Markdown and plots.
//
// The table in catalog.go describes each scenario and its metrics: titles, units, and whether more
// is better. A scenario or metric that is not in this table is shown under its id. The table in
// targets.go lists the targets. A figure is the median of a metric over the rounds, with the
// smallest and the largest value. Two systems are compared round by round, because each round
// measures all systems.
//
// The plots contain no script. Their style adapts to light and dark pages.
//
// # Files
//
// Files in reading order: write.go, linesvg.go, lines.go, markdown.go, bars.go, peerwins.go,
// table.go, targets.go, svg.go, catalog.go, result.go, figure.go.
package report
