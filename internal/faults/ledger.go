package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"switchboard/internal/testbed"
)

// ledgerFiles are the files that a run writes. The zero value means none.
type ledgerFiles struct {
	page   string // Markdown
	record string // JSON
}

// published are the files in this repository, relative to its root.
var published = ledgerFiles{page: "docs/faults.md", record: "internal/faults/ledger.json"}

// ledger is the report of a run.
type ledger struct {
	Date    string  `json:"date"`
	Commit  string  `json:"commit"`
	Machine string  `json:"machine"`
	Go      string  `json:"go"`
	Redis   string  `json:"redis"`
	Seed    uint64  `json:"seed"`
	Beat    string  `json:"beat"`
	Lease   string  `json:"lease"`
	Janitor string  `json:"janitor_every"`
	Load    string  `json:"load"`
	Seconds float64 `json:"seconds"`
	Rows    []row   `json:"rows"`

	Kills *killReport `json:"presence_after_kill,omitempty"`
}

func newLedger(r runner) *ledger {
	return &ledger{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: testbed.Commit(published.page, published.record), Machine: machine(), Go: runtime.Version(),
		Redis: testbed.RedisVersion(), Seed: r.seed, Beat: r.times.Beat.String(),
		Lease: r.times.lease().String(), Janitor: r.times.janitorInterval().String(),
		Load: fmt.Sprintf("%d clients, three devices of a user, a fifth over Server-Sent Events and a fifth with client/js, in one Node process; %d channels with %g pushes a second each; %d users and %d single clients with %g each, and one stream to all clients with %g; every eighth message has %d KiB; %d of the channels with a state that half of their clients follow, and that %d clients with %g updates a second each and a backend with %g change",
			r.scale.Clients, r.scale.Rooms, r.scale.RoomRate, r.scale.UserStreams, r.scale.ClientStreams,
			r.scale.OtherRate, r.scale.OtherRate, paddingKiB, r.scale.StateRooms, r.scale.StateWriters, writerRate, backendRate),
	}
}

// machine describes the machine: cores, memory, platform.
func machine() string {
	return fmt.Sprintf("%d cores, %s, %s/%s", runtime.NumCPU(), testbed.Memory(), runtime.GOOS, runtime.GOARCH)
}

// column is a column of a table and its explanation.
type column struct {
	name, means string
	cell        func(row) string
}

// columns are the columns of the first table.
var columns = []column{
	{"fault", "the fault; the section Faults describes it", func(r row) string { return r.Fault }},
	{"Redis", "deployment of Redis", func(r row) string { return r.Redis }},
	{"acked", "accepted messages, counted per addressee: a message to a channel with 40 confirmed subscribers counts 40 times", func(r row) string { return fmt.Sprint(r.Acknowledged) }},
	{"delivered", "of acked: delivered to the addressee", func(r row) string { return fmt.Sprint(r.Delivered) }},
	{"lost", "of acked: not delivered, even long after the load ended", func(r row) string { return fmt.Sprint(r.Lost) }},
	{"dup", "delivered twice under the same id, past the duplicate filter of the client library", func(r row) string { return fmt.Sprint(r.Duplicated) }},
	{"again", "delivered also under an id that was never acknowledged: Redis had stored a refused attempt, and then forgot that", func(r row) string { return fmt.Sprint(r.Again) }},
	{"disorder", "delivered after a higher id of the same queue, or a higher number of the same publisher", func(r row) string { return fmt.Sprint(r.Disorder) }},
	{"undeclared", "lost, and no gap that the client received covers it", func(r row) string { return fmt.Sprint(r.Undeclared) }},
	{"strange", "delivered to a wrong addressee, or under another id than was acknowledged", func(r row) string { return fmt.Sprint(r.Strange) }},
	{"unnamed", "connected devices that the answer to a push to their user did not name; the backend can see this", func(r row) string { return fmt.Sprint(r.Unnamed) }},
	{"ghosts", "clients and keys that were still online, bound or stored after the lease, two rounds of the janitor and a margin", func(r row) string { return fmt.Sprint(r.Ghosts) }},
	{"events", "joins and leaves that the watchers received; one watcher at each broker watches all channels and some users", func(r row) string { return fmt.Sprint(r.Events) }},
	{"repeated", "of events: joins of clients that were members already, leaves of clients that were not members, and events about the watcher itself", func(r row) string { return fmt.Sprint(r.RepeatedEvents) }},
	{"missing", "members that a watcher's view or a broker's answer lacked when the load had ended", func(r row) string { return fmt.Sprint(r.Missing) }},
	{"phantoms", "names in a watcher's view or a broker's answer that were no members, among them clients that had died with a broker", func(r row) string { return fmt.Sprint(r.Phantoms) }},
	{"over SSE", "delivered and acked, and among these dup, of the clients over Server-Sent Events, a fifth of all; they have no filter for duplicates", func(r row) string {
		return fmt.Sprintf("%d of %d, %d dup", r.OverSSE.Delivered, r.OverSSE.Acknowledged, r.OverSSE.Duplicated)
	}},
	{"SSE resumed", "streams of these clients that began with the last id of an earlier one", func(r row) string { return fmt.Sprint(r.OverSSE.Resumed) }},
	{"JavaScript", "delivered and acked, among these dup, and gaps, of the clients with [client/js](../client/js/README.md), a fifth of all, counted in the handlers of the application; some handlers of the inbox fail at first, and must get the message again", func(r row) string {
		return fmt.Sprintf("%d of %d, %d dup, %d gaps", r.JavaScript.Delivered, r.JavaScript.Acknowledged, r.JavaScript.Duplicated, r.JavaScript.Gaps)
	}},
	{"JS resumed", "connections of these clients after their first ones; a quarter of them is also reloaded every few seconds, and keeps its positions in a storage", func(r row) string { return fmt.Sprint(r.JavaScript.Resumed) }},
	{"JS kept", "messages in the inboxes of these clients, which have handled them, that Redis holds in the end", func(r row) string { return fmt.Sprint(r.KeptInJS) }},
	{"gaps", "gaps that clients received", func(r row) string { return fmt.Sprint(r.Gaps) }},
	{"unacked", "delivered although the push was never accepted; allowed", func(r row) string { return fmt.Sprint(r.Unacknowledged) }},
	{"refused", "failed attempts to push; each was repeated with the same key", func(r row) string { return fmt.Sprint(r.Refused) }},
	{"no push", "longest time without an accepted push", func(r row) string { return seconds(r.WithoutPush) }},
	{"back p50", "time from the fault to the first message pushed after it, median over clients", func(r row) string { return seconds(r.RecoverP50) }},
	{"back max", "the same, of the slowest client", func(r row) string { return seconds(r.RecoverMax) }},
	{"silence", "longest time between two messages of one client", func(r row) string { return seconds(r.Silence) }},
	{"", "ok or RED", row.verdict},
}

// table formats the ledger for a terminal.
func (l *ledger) table() string {
	var b strings.Builder
	for i, columns := range [][]column{columns, stateColumns, eraseColumns} {
		b.WriteString([]string{"", "\nstate\n", "\nerased messages\n"}[i])
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		for _, c := range columns {
			fmt.Fprint(w, c.name, "\t")
		}
		for _, r := range l.Rows {
			fmt.Fprintln(w)
			for _, c := range columns {
				fmt.Fprint(w, c.cell(r), "\t")
			}
		}
		fmt.Fprintln(w)
		_ = w.Flush()
	}
	return b.String()
}

// writeTable writes the rows as a table in Markdown.
func (l *ledger) writeTable(b *strings.Builder, columns []column) {
	for _, c := range columns {
		fmt.Fprintf(b, "| %s ", c.name)
	}
	b.WriteString("|\n" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, r := range l.Rows {
		for _, c := range columns {
			fmt.Fprintf(b, "| %s ", c.cell(r))
		}
		b.WriteString("|\n")
	}
}

// writeMeanings writes the explanations of the columns as a list.
func writeMeanings(b *strings.Builder, columns []column) {
	for _, c := range columns {
		name := c.name
		if name == "" {
			name = "last column"
		}
		fmt.Fprintf(b, "- **%s**: %s.\n", name, c.means)
	}
}

// explain says why the row is red.
func (r row) explain() string {
	return explain(r.Fault, r.Red, r.Evidence) + fmt.Sprintf("  refused: %v\n", r.Reasons)
}

func explain(what string, red []string, found evidence) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is RED: %s\n", what, strings.Join(red, ", "))
	for _, kind := range slices.Sorted(maps.Keys(found)) {
		for _, text := range found[kind] {
			fmt.Fprintf(&b, "  %s: %s\n", kind, text)
		}
	}
	return b.String()
}

// write writes the page and the record.
func (l *ledger) write(files ledgerFiles) error {
	encoded, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		writeFile(files.record, string(encoded)+"\n"),
		writeFile(files.page, l.markdown()),
	)
}

func (l *ledger) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Fault ledger

This page reports what happened to messages, to presence, to [channel state](#channel-state) and to [erased messages](#erased-messages) while something was
broken on purpose. Redis, the brokers and the janitor are separate processes. The program that pushes and the clients keep the accounts; they do not rely on any broker. `+"`make faults`"+`
writes this page, and fails if a row is RED.

%s · commit %s · seed %d · beat %s, lease %s, janitor every %s · %s · %s · Redis %s · %.0f s

Load: %s.

`, l.Date, l.Commit, l.Seed, l.Beat, l.Lease, l.Janitor, l.Machine, l.Go, l.Redis, l.Seconds, l.Load)
	l.writeTable(&b, columns)
	b.WriteString(stateHeading)
	l.writeTable(&b, stateColumns)
	b.WriteString(eraseHeading)
	l.writeTable(&b, eraseColumns)
	if l.Kills != nil {
		b.WriteString(l.Kills.markdown())
	}
	b.WriteString("\n## Faults\n\nThe seed chooses victims and moments. Where Redis itself loses its last writes (marked †), a push that was refused and repeated\nmay arrive twice, because Redis forgot that it had stored it. Unless the pushes were durable, messages may also be lost and\ndevices unknown for a moment, but a gap must declare each loss to the client. Updates of states that were not durable may be lost, too.\nEverywhere else all of these are red.\n\n")
	for _, r := range l.Rows {
		mark := ""
		if r.Forgets {
			mark = " †"
		}
		fmt.Fprintf(&b, "- **%s**%s: %s.\n", r.Fault, mark, r.About)
	}
	b.WriteString("\n## Columns\n\n")
	writeMeanings(&b, columns)
	b.WriteString("\n## Columns of channel state\n\n")
	writeMeanings(&b, stateColumns[1:])
	b.WriteString("\n## Columns of erased messages\n\n")
	writeMeanings(&b, eraseColumns[1:])
	for _, r := range l.Rows {
		if len(r.Red) > 0 {
			b.WriteString("\n## Reasons for RED\n\n```text\n")
			break
		}
	}
	for _, r := range l.Rows {
		if len(r.Red) > 0 {
			b.WriteString(r.explain())
		}
	}
	if strings.Contains(b.String(), "## Reasons for RED") {
		b.WriteString("```\n")
	}
	return b.String()
}

func makeDir(dir string) error { return os.MkdirAll(dir, 0o755) }

func removeDir(dir string) error { return os.RemoveAll(dir) }

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }
