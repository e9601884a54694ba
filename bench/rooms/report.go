package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"switchboard/bench/system"
)

// row is a row of a table.
type row struct {
	text, metric string
	format       func(float64) string
}

var roomRows = []row{
	{"joins a second, rooms of 4", "joins 4 per s", count},
	{"CPU of a join, rooms of 4", "joins 4 cpu", microseconds},
	{"joins a second, rooms of 50", "joins 50 per s", count},
	{"CPU of a join, rooms of 50", "joins 50 cpu", microseconds},
	{"changes a second, each to 4 members", "changes 4 per s", count},
	{"CPU of a delivered change, 4 members", "changes 4 cpu", microseconds},
	{"of which Redis", "changes 4 redis cpu", microseconds},
	{"cores that the server used meanwhile", "changes 4 cores", decimals},
	{"changes a second, each to 50 members", "changes 50 per s", count},
	{"CPU of a delivered change, 50 members", "changes 50 cpu", microseconds},
	{"of which Redis", "changes 50 redis cpu", microseconds},
	{"cores that the server used meanwhile", "changes 50 cores", decimals},
	{"idle room with 4 members, RSS", "memory room 4", kilobytes},
	{"the same in Redis", "redis memory room 4", kilobytes},
	{"idle room with 4 members, CPU a second", "idle cpu 4", microseconds},
	{"room without members, RSS", "memory empty room", kilobytes},
	{"the same in Redis", "redis memory empty room", kilobytes},
}

func holdRows(resources int) []row {
	many := fmt.Sprint("holds ", resources)
	return []row{
		{"holds a second, one resource", "holds 1 per s", count},
		{"CPU of a hold, one resource", "holds 1 cpu", microseconds},
		{fmt.Sprintf("holds a second, %d resources", resources), many + " per s", count},
		{fmt.Sprintf("CPU of a hold, %d resources", resources), many + " cpu", microseconds},
	}
}

func count(v float64) string        { return fmt.Sprintf("%.0f", v) }
func decimals(v float64) string     { return fmt.Sprintf("%.2f", v) }
func kilobytes(v float64) string    { return fmt.Sprintf("%.1f KB", v/1e3) }
func microseconds(v float64) string { return significant(v) + " µs" }

// significant formats a number with two digits at least.
func significant(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// values returns the figures of all rounds, ascending.
func (r *run) values(contender, metric string) (list []float64) {
	for _, f := range r.figures {
		if f.contender == contender && f.metric == metric {
			list = append(list, f.value)
		}
	}
	slices.Sort(list)
	return list
}

// median returns the median of the rounds, 0 without one.
func (r *run) median(contender, metric string) float64 {
	list := r.values(contender, metric)
	if len(list) == 0 {
		return 0
	}
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2
}

// cell formats the median, with the range of the rounds.
func (r *run) cell(contender string, row row) string {
	list := r.values(contender, row.metric)
	if len(list) == 0 {
		return "–"
	}
	text, low, high := row.format(r.median(contender, row.metric)), row.format(list[0]), row.format(list[len(list)-1])
	if low == high {
		return text
	}
	const units = " µsKB"
	return fmt.Sprintf("%s (%s–%s)", text, strings.TrimRight(low, units), strings.TrimRight(high, units))
}

// table prints rows for some contenders.
func (r *run) table(w io.Writer, contenders []string, rows []row) {
	fmt.Fprintf(w, "| | %s |\n|---%s|\n", strings.Join(contenders, " | "), strings.Repeat("|---", len(contenders)))
	for _, row := range rows {
		fmt.Fprintf(w, "| %s", row.text)
		for _, c := range contenders {
			fmt.Fprintf(w, " | %s", r.cell(c, row))
		}
		fmt.Fprintln(w, " |")
	}
	fmt.Fprintln(w)
}

// aim is how many times less CPU than Colyseus a delivered change shall cost.
const aim = 5

// aims compares the CPU of delivered changes.
func (r *run) aims(w io.Writer) {
	fmt.Fprintf(w, "| CPU of a delivered change, divided by the broker's | %s | %s |\n|---|---|---|\n", inMemory, overRedis)
	for _, metric := range []string{"changes 4 cpu", "changes 50 cpu"} {
		for _, peer := range []string{eachPatch, batched} {
			fmt.Fprintf(w, "| %s, %s members", peer, strings.Fields(metric)[1])
			for _, own := range []string{inMemory, overRedis} {
				times := r.median(peer, metric) / cmp.Or(r.median(own, metric), 1)
				verdict := "not met"
				switch {
				case times >= aim:
					verdict = "met"
				case times < 1:
					verdict = "not met, the broker costs more"
				}
				fmt.Fprintf(w, " | %.1f: %s", times, verdict)
			}
			fmt.Fprintln(w, " |")
		}
	}
	fmt.Fprintln(w)
}

// report prints the run as Markdown.
func (r *run) report(w io.Writer, m machine) {
	var names []string
	fmt.Fprintf(w, "# Rooms beside Colyseus\n\nWritten by `go run ./bench/rooms`, %s. [What is measured, and how](doc.go).\n\n",
		m.begun.Format("2006-01-02"))
	fmt.Fprintf(w, "%s\n\nColyseus: %s, one process. Its server is [here](../peers/colyseus/server.js). Each cell is the median of %d rounds, with the range. "+
		"CPU is user and system time of the server's processes, with Redis. It is the figure to compare: the numbers a second also depend "+
		"on the generator and on all else that runs on the machine.\n\n", m, system.ColyseusVersion, r.size.rounds)
	for _, c := range contenders() {
		names = append(names, c.name)
		fmt.Fprintf(w, "- **%s**: %s.\n", c.name, c.notes)
	}
	fmt.Fprintln(w, "\n## Rooms")
	fmt.Fprintln(w)
	r.table(w, names, roomRows)
	fmt.Fprint(w, limits)
	fmt.Fprintf(w, "## The aim\n\nA change shall cost a fifth of what it costs in Colyseus, per delivery: %d times as many changes with one core.\n\n", aim)
	r.aims(w)
	fmt.Fprint(w, aimText)
	fmt.Fprintf(w, "## Holds\n\nEach hold is one unit for another user, over HTTP, from %d connections of a backend. Colyseus has no counterpart.\n\n", holdConnections)
	r.table(w, []string{inMemory, overRedis}, holdRows(r.size.resources))
	fmt.Fprint(w, boardText)
}

const limits = `What is not the same in both:

- A change of the broker is stored with an id in a history, checked against the rights of its field, and acknowledged to its writer. A
  change of Colyseus is an assignment in the memory of its process, and is gone with it.
- The broker sends JSON, Colyseus a binary patch of 13 bytes for each player.
- "50 ms" delays a change by 25 ms on average. Two changes of one field in that time become one. This does not happen here, because a
  member waits for its last change. Its changes a second are bounded by the patches: 20 for each member.
- The memory of Node.js grows in steps, and so does that of Go. The ranges show it.
- A join of Colyseus takes two connections, one to the matchmaker, as its client library does; that of the broker takes one.

`

const aimText = `In rooms of 4 Colyseus writes four times for each change. The broker has five things to send, to four members and the acknowledgement, which often
goes out in one write with the writer's own change. In a profile of the memory broker, system calls were two fifths of the CPU; requests, rights, the
store and garbage collection were the rest. Two fifths of its CPU are a third of that of Colyseus. So even a broker that did nothing but read and
write would not cost a fifth there: that needs fewer writes. In rooms of 50 the broker sends several changes of the channel with one write if they
are due at the same time, but it never waits for more. Patches every 50 ms do wait, and deliver up to 50 changes with one write. Beside them, the
broker's changes cost more, and arrive sooner.

`

const boardText = `The one resource has thousands of holds in one channel. The memory store looks at the names of all fields of a channel for each hold,
Redis has an index of the names.

Submits and ranks of leaderboards with a million entries have a Go benchmark, ` + "`go test -run '^$' -bench Million ./kit/board`" + `. [Its
figures](../../docs/boards.md) are not repeated here.
`
