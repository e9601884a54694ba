package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// writeMarkdown writes the report. plots are the plots of each scenario, million is the summary of
// the run with a million connections, and method is the path of methodFile from the report, or "".
func writeMarkdown(w io.Writer, r Run, plots map[string][]plot, million, method string) {
	p := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	p("# Comparison with other servers\n")
	p("Written by `make bench`. Commit %s, %s, %s, Redis %s, on %s. %s, %s.\n",
		r.Commit, r.Date, r.Go, r.Redis, r.Machine, plural(r.Rounds, "round"), r.Took.Round(time.Second))
	if r.Quick {
		p("%s\n", quickNote)
	}
	if len(r.Stolen) > 0 {
		p("The machine's host took %s %% of the processors' time (CPU steal, by round). Steal makes all figures larger.\n", r.stolenText())
	}
	if method == "" {
		p("%s\n", methodText)
	} else {
		p("%s [What is measured and how](%s).\n", methodText, method)
	}
	p("## Targets\n")
	var rows [][]string
	verdicts := r.evaluate()
	for _, v := range verdicts {
		rows = append(rows, v.cells())
	}
	writeTable(w, targetHead, rows)
	if left := len(Targets) - len(verdicts); left > 0 {
		p("\nThis run does not have all scenarios: it says nothing about %s.", plural(left, "other target"))
	}
	p("\nRatios are computed round by round; the figure itself is in parentheses. A curve counts as flat if its last point is at most %g times its first.", flatLimit)
	if million == "" {
		million = "not measured."
	} else {
		million += " [All figures](MILLION.md)."
	}
	p("A million connections are measured separately by `make bench-million`: %s\n", million)
	writePeerWins(w, r)
	for _, s := range r.scenarios() {
		writeSection(w, r, s, plots[s.id])
	}
	writeInvalid(w, r)
	writeConfigurations(w, r)
}

// writePeerWins lists where peers are better, and the targets that were missed.
func writePeerWins(w io.Writer, r Run) {
	fmt.Fprint(w, "## Where other servers are better\n\n")
	sameStore, otherStore := r.peerWins()
	if len(sameStore)+len(otherStore)+len(r.missed()) == 0 {
		fmt.Fprint(w, "Nowhere in this run.\n\n")
	}
	for _, group := range []struct {
		head  string
		texts []string
	}{
		{"Both servers keep their messages in memory, or both in Redis:", sameStore},
		{"One server keeps its messages in Redis, the other in the memory of its process:", otherStore},
		{"Targets missed:", r.missed()},
	} {
		if len(group.texts) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\n\n", group.head)
		for _, text := range group.texts {
			fmt.Fprintf(w, "- %s\n", text)
		}
		fmt.Fprintln(w)
	}
}

// stolenText lists the CPU steal of each round.
func (r Run) stolenText() string {
	var all []string
	for _, percent := range r.Stolen {
		all = append(all, fmt.Sprintf("%.1f", percent))
	}
	return strings.Join(all, ", ")
}

const methodText = "Each figure is the median over the rounds, followed by [smallest – largest]. A round measures all systems one after the other and " +
	"starts each anew. Server, load generator and Redis share the machine, so compare the CPU time of the server's processes: throughput " +
	"also depends on the load generator. Every delivery is checked. A measurement with a lost, repeated, changed or reordered message does " +
	"not count. 1 KB is 1,000 bytes. “Memory” in a system's name means that it keeps messages in the memory of its process, as nchan and " +
	"mosquitto do; the other systems use Redis. “× ours” is the ratio to our system with the same kind of store."

// writeSection writes one scenario.
func writeSection(w io.Writer, r Run, s scenario, plots []plot) {
	fmt.Fprintf(w, "## %s\n\n", s.title)
	if s.text != "" {
		fmt.Fprintf(w, "%s\n\n", s.text)
	}
	for _, pl := range plots {
		fmt.Fprintf(w, "![%s](%s)\n\n", pl.title, pl.file)
	}
	rows := r.rows(s)
	if s.curve == nil {
		writeTable(w, rows[0], rows[1:])
		fmt.Fprintln(w)
		return
	}
	for len(rows) > 0 { // a table for each metric
		n := len(r.xs(s.id, s.metrics[0].id)) + 1
		writeTable(w, rows[0], rows[1:n])
		fmt.Fprintln(w)
		rows, s.metrics = rows[n:], s.metrics[1:]
	}
}

// writeInvalid lists the measurements that did not count.
func writeInvalid(w io.Writer, r Run) {
	fmt.Fprint(w, "## Measurements that did not count\n\n")
	for _, text := range r.Invalid {
		fmt.Fprintf(w, "- %s\n", strings.Join(strings.Fields(text), " "))
	}
	if len(r.Invalid) == 0 {
		fmt.Fprintln(w, "Every measurement counted.")
	}
	fmt.Fprintln(w)
}

// writeConfigurations lists the systems with their versions and configurations.
func writeConfigurations(w io.Writer, r Run) {
	fmt.Fprint(w, "## Configurations\n\n")
	var rows [][]string
	names := maps.Clone(r.Notes)
	if names == nil {
		names = map[string]string{}
	}
	for name := range r.Versions {
		names[name] += ""
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rows = append(rows, []string{name, r.Versions[name], r.Notes[name]})
	}
	writeTable(w, []string{"system", "version", "configuration"}, rows)
}

// writeTable writes a Markdown table.
func writeTable(w io.Writer, head []string, rows [][]string) {
	line := func(cells []string) {
		for _, c := range cells {
			c = strings.Join(strings.Fields(c), " ")
			fmt.Fprintf(w, "| %s ", strings.ReplaceAll(c, "|", `\|`))
		}
		fmt.Fprintln(w, "|")
	}
	line(head)
	fmt.Fprintln(w, strings.Repeat("|---", len(head))+"|")
	for _, row := range rows {
		line(row)
	}
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
