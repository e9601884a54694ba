// Package report writes the results of the benchmark suite as Markdown and plots.
//
// The table in catalog.go describes each scenario and its metrics: titles, units, and whether more
// is better. The table in targets.go lists the targets. A scenario or metric that is in neither
// table is shown under its id. A figure is the median over the rounds, with the smallest and the
// largest value. Two systems are compared round by round, because the rounds of a run are
// interleaved.
//
// The plots contain no script. Their style adapts to light and dark pages.
package report
