package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// ledgerFiles are the files that a run writes. The zero value means none.
type ledgerFiles struct {
	page   string // Markdown
	record string // JSON
}

// published are the files in this repository, relative to its root.
var published = ledgerFiles{page: "docs/faults.md", record: "internal/faults/ledger.json"}

// ledger is a run.
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

	Kills *killSeries `json:"presence_after_kill,omitempty"`
}

func newLedger(ctx context.Context, r runner) *ledger {
	return &ledger{
		Date: time.Now().UTC().Format(time.DateOnly), Commit: commit(ctx), Machine: machine(), Go: runtime.Version(),
		Redis: redisVersion(ctx), Seed: r.seed, Beat: r.times.Beat.String(),
		Lease: r.times.lease().String(), Janitor: r.times.servers().String(),
		Load: fmt.Sprintf("%d clients, three devices of a user; %d channels with %g pushes a second each; %d users and %d single clients with %g each, and everyone with %g; every eighth message has %d KiB",
			r.scale.Clients, r.scale.Rooms, r.scale.RoomRate, r.scale.UserStreams, r.scale.ClientStreams,
			r.scale.OtherRate, r.scale.OtherRate, padded),
	}
}

// said is the first line of what a program says.
func said(ctx context.Context, name string, args ...string) string {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return first
}

// redisVersion is the version alone, without the build.
func redisVersion(ctx context.Context) string {
	for field := range strings.FieldsSeq(said(ctx, "redis-server", "--version")) {
		if version, ok := strings.CutPrefix(field, "v="); ok {
			return version
		}
	}
	return "unknown"
}

func commit(ctx context.Context) string {
	id := said(ctx, "git", "rev-parse", "--short=12", "HEAD")
	if changed := said(ctx, "git", "status", "--porcelain", "--", ":!"+published.page, ":!"+published.record); changed != "" {
		id += " and changes"
	}
	return id
}

// machine is cores and memory.
func machine() string {
	memory := "unknown memory"
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		var kib int
		if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err == nil {
			memory = fmt.Sprintf("%d GiB", (kib+1<<19)>>20)
		}
	}
	return fmt.Sprintf("%d cores, %s, %s/%s", runtime.NumCPU(), memory, runtime.GOOS, runtime.GOARCH)
}

// columns are the table's, with what each means.
var columns = []struct {
	name, means string
	cell        func(row) string
}{
	{"fault", "what was done; below it is said at length", func(r row) string { return r.Fault }},
	{"Redis", "its shape", func(r row) string { return r.Redis }},
	{"acked", "addressee-messages of accepted pushes: a message to a channel with 40 confirmed subscribers is 40", func(r row) string { return fmt.Sprint(r.Acknowledged) }},
	{"delivered", "of these, how many reached their addressee", func(r row) string { return fmt.Sprint(r.Delivered) }},
	{"lost", "of these, how many did not, until long after the load had ended", func(r row) string { return fmt.Sprint(r.Lost) }},
	{"dup", "how many reached an addressee a second time under the same id, behind the filter of the client library", func(r row) string { return fmt.Sprint(r.Duplicated) }},
	{"again", "how many reached an addressee also under an id that was never acknowledged: from an attempt that was refused, and that Redis then forgot", func(r row) string { return fmt.Sprint(r.Again) }},
	{"disorder", "how many came behind a higher id of their queue, or a higher number of their publisher", func(r row) string { return fmt.Sprint(r.Disorder) }},
	{"undeclared", "lost, and no gap that the client was told covers them", func(r row) string { return fmt.Sprint(r.Undeclared) }},
	{"strange", "came to a wrong addressee, or under another id than was acknowledged", func(r row) string { return fmt.Sprint(r.Strange) }},
	{"unnamed", "connected devices that the answer to a push to their user did not name: the backend was told", func(r row) string { return fmt.Sprint(r.Unnamed) }},
	{"ghosts", "who or what was still online, bound or stored when lease, two rounds of the janitor and a margin had passed", func(r row) string { return fmt.Sprint(r.Ghosts) }},
	{"told", "who came and went, as watchers were told, one at each broker that follows all channels and some users", func(r row) string { return fmt.Sprint(r.Told) }},
	{"twice", "how many of these came who was there, or went who was not, or were the watcher's own", func(r row) string { return fmt.Sprint(r.ToldTwice) }},
	{"missing", "who was there when all was quiet, and not by what a watcher had been told, or a broker answered", func(r row) string { return fmt.Sprint(r.Missing) }},
	{"phantoms", "who was not, and by one of these was; and who died with a broker and was there after the time of the ghosts", func(r row) string { return fmt.Sprint(r.Phantoms) }},
	{"gaps", "gaps that clients were told", func(r row) string { return fmt.Sprint(r.Gaps) }},
	{"unacked", "delivered although the push was never accepted; allowed", func(r row) string { return fmt.Sprint(r.Unacknowledged) }},
	{"refused", "attempts to push that failed and were made again, with the same key", func(r row) string { return fmt.Sprint(r.Refused) }},
	{"no push", "the longest time in which no push was accepted", func(r row) string { return seconds(r.WithoutPush) }},
	{"back p50", "time from the fault to the first message that was pushed after it, median over clients", func(r row) string { return seconds(r.RecoverP50) }},
	{"back max", "the same, of the last client", func(r row) string { return seconds(r.RecoverMax) }},
	{"silence", "the longest time between two messages of one client", func(r row) string { return seconds(r.Silence) }},
	{"", "ok or RED", row.verdict},
}

// table is the ledger for a terminal.
func (l *ledger) table() string {
	var b strings.Builder
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
	return b.String()
}

// explain says why a row is red.
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

What happened to messages while something was broken on purpose. Redis, brokers and the janitor are processes of
their own; the program that pushes and the clients keep the accounts and ask no broker for any. Made by `+"`make faults`"+`,
which writes this page anew and fails where a row is RED.

%s · commit %s · seed %d · beat %s, lease %s, janitor every %s · %s · %s · Redis %s · %.0f s

Load: %s.

`, l.Date, l.Commit, l.Seed, l.Beat, l.Lease, l.Janitor, l.Machine, l.Go, l.Redis, l.Seconds, l.Load)
	for _, c := range columns {
		fmt.Fprintf(&b, "| %s ", c.name)
	}
	b.WriteString("|\n" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, r := range l.Rows {
		for _, c := range columns {
			fmt.Fprintf(&b, "| %s ", c.cell(r))
		}
		b.WriteString("|\n")
	}
	if l.Kills != nil {
		b.WriteString(l.Kills.markdown())
	}
	b.WriteString("\n## Faults\n\nThe seed chooses victims and moments. Where Redis itself loses its last writes (marked †) a push that was refused and made\nagain may arrive twice, since Redis forgot that it had stored it; and unless the pushes were durable, messages may be lost and\ndevices unknown for a moment, but each loss must be told to the client. Everywhere else all these are red.\n\n")
	for _, r := range l.Rows {
		mark := ""
		if r.Forgets {
			mark = " †"
		}
		fmt.Fprintf(&b, "- **%s**%s: %s.\n", r.Fault, mark, r.Driven)
	}
	b.WriteString("\n## Columns\n\n")
	for _, c := range columns {
		name := c.name
		if name == "" {
			name = "the last"
		}
		fmt.Fprintf(&b, "- **%s**: %s.\n", name, c.means)
	}
	for _, r := range l.Rows {
		if len(r.Red) > 0 {
			b.WriteString("\n## Why it is red\n\n```\n")
			break
		}
	}
	for _, r := range l.Rows {
		if len(r.Red) > 0 {
			b.WriteString(r.explain())
		}
	}
	if strings.Contains(b.String(), "## Why it is red") {
		b.WriteString("```\n")
	}
	return b.String()
}
