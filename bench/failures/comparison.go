package main

import (
	"bytes"
	"fmt"

	plots "switchboard/bench/report"
)

const (
	// plotFile is the plot, relative to the directory of the report.
	plotFile  = "plots/failures.svg"
	plotTitle = "Commands of Redis after a server without clients is killed, starts or ends"
)

// switchboards returns the cases in which the clients do not watch, as centrifuge has no such case.
func (r report) switchboards() (list []result) {
	for _, c := range r.Results {
		if !c.Watching {
			list = append(list, c)
		}
	}
	return list
}

// plot draws the commands against the number of clients.
func (r report) plot() []byte {
	var lines []plots.Line
	for _, system := range []struct {
		name    string
		results []result
	}{{"switchboard", r.switchboards()}, {centrifugeName, r.Centrifuge}} {
		for _, step := range []struct {
			name string
			of   func(result) int64
		}{
			{"kill", func(c result) int64 { return c.Kill }},
			{"start", func(c result) int64 { return c.Start }},
			{"end", func(c result) int64 { return c.End }},
		} {
			line := plots.Line{Name: system.name + " " + step.name}
			for _, c := range system.results {
				line.Points = append(line.Points, plots.Point{X: float64(c.Clients), Y: float64(step.of(c))})
			}
			if len(line.Points) > 0 {
				lines = append(lines, line)
			}
		}
	}
	return plots.LinesSVG(plotTitle, "clients on the other server", "commands in 14 s (kill) or 8 s", lines)
}

// writeComparison writes the table of both systems and the plot. path leads to the directory of the
// report.
func (r report) writeComparison(b *bytes.Buffer, path string) {
	if len(r.Centrifuge) == 0 || len(r.switchboards()) == 0 {
		return
	}
	b.WriteString("\nCommands of Redis while a server without clients is killed, starts and ends as planned, and all clients are connected to another one, each with a channel of its own. " +
		"Those of a quiet system are included. Switchboard asks at once for what it may have missed. Centrifuge asks nothing at a failure: it reads the position of each channel every 40 s, " +
		"always, and a client that has missed a message reconnects then. Such checks are in its figures; that of the quiet time is the mean of 50 s.\n\n" +
		"| clients | quiet, 14 s | `kill -9`, 14 s | start, 8 s | planned end, 8 s |\n|---|---|---|---|---|\n")
	for _, system := range []struct {
		name    string
		results []result
	}{{"switchboard", r.switchboards()}, {centrifugeName, r.Centrifuge}} {
		for _, c := range system.results {
			fmt.Fprintf(b, "| %s, %s | %s | %s | %s | %s |\n", system.name, plots.Thousands(int64(c.Clients)),
				plots.Thousands(c.Quiet), plots.Thousands(c.Kill), plots.Thousands(c.Start), plots.Thousands(c.End))
		}
	}
	fmt.Fprintf(b, "\n![%s](%s%s)\n", plotTitle, path, plotFile)
}
