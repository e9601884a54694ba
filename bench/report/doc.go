// Package report turns the figures of the benchmark suite into Markdown and plots.
//
// What is known of a scenario and its metrics (titles, units, which way is better) is the table in
// catalog.go, what is to be reached is the table in targets.go. A scenario or metric that neither knows is shown
// under its id. Figures are medians over the rounds with the least and the most; where two systems are set
// against each other, their rounds are, one by one, because the rounds of a run are interleaved.
//
// The plots carry no script, and style themselves for light and dark pages.
package report
