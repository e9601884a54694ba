package linear

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"switchboard/internal/replay"
	"switchboard/internal/state"
	"switchboard/queue"
)

// logged is one entry of the log.
type logged struct {
	replay.Entry
	number int64 // of the call that appended it; 0 for a sweep or a marker
}

// reader reads the log of a channel.
type reader interface {
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error)
}

// readLog returns the complete log.
func readLog(t *testing.T, q reader) (log []logged) {
	t.Helper()
	var entries []replay.Entry
	for last, more := int64(0), true; more; {
		page, err := q.ReadChannel(t.Context(), channel, last, 1000)
		if err != nil || !page.Complete {
			t.Fatalf("the log after %d: complete=%v: %v", last, page.Complete, err)
		}
		for _, m := range page.Messages {
			if entries, err = replay.Append(entries, m.ID, m.Data); err != nil {
				t.Fatal(err)
			}
			last = m.ID
		}
		more = page.More
	}
	for _, e := range entries {
		l, data := logged{Entry: e}, json.RawMessage(e.Data)
		if e.Changes != nil {
			data = e.Changes.Data
		}
		if _, _, isMarker := queue.Loss(e.Data); !isMarker && data != nil {
			if err := json.Unmarshal(data, &l.number); err != nil {
				t.Fatalf("message %d: %v", e.ID, err)
			}
		}
		log = append(log, l)
	}
	return log
}

// entriesOf returns the entries of a log.
func entriesOf(log []logged) (entries []replay.Entry) {
	for _, l := range log {
		entries = append(entries, l.Entry)
	}
	return entries
}

// withoutPrefix returns the entries of log after those that it has in common with other.
func withoutPrefix(log, other []logged) []logged {
	n := 0
	for n < len(log) && n < len(other) && log[n].ID == other[n].ID && string(log[n].Data) == string(other[n].Data) {
		n++
	}
	return log[n:]
}

// check returns what is wrong with a history, or "". lost are the entries that a failover has lost.
func (h *history) check(log, lost []logged) string {
	if h.failure != nil {
		return h.failure.Error()
	}
	calls, wrong := h.resolve(log, lost)
	if wrong == "" {
		wrong = checkMarkers(log)
	}
	if wrong == "" {
		wrong = checkFold(log, calls)
	}
	if wrong == "" && len(lost) > 0 {
		kept := slices.IndexFunc(log, func(l logged) bool { return l.ID > lost[0].Prev })
		if kept < 0 {
			kept = len(log)
		}
		wrong = checkFold(slices.Concat(log[:kept], lost), calls)
	}
	if wrong == "" {
		wrong = checkOrder(calls)
	}
	return wrong
}

// resolve returns the calls of the history, with those without an answer that have happened, and
// with the loss if entries were lost.
func (h *history) resolve(log, lost []logged) (calls []*call, wrong string) {
	never := h.position + 1 // the end of calls without an answer
	unclaimed := make(map[int64]logged)
	for _, l := range slices.Concat(log, lost) {
		if _, twice := unclaimed[l.ID]; twice {
			return nil, fmt.Sprintf("the id %d was lost, and is assigned again", l.ID)
		}
		unclaimed[l.ID] = l
	}
	entries := maps.Clone(unclaimed)
	open := make(map[int64]*call) // by number: the first call without an answer
	steps, candidates := h.openSteps()
	guesses := guessSteps(log)
	for _, c := range h.calls {
		if c.optional {
			continue
		}
		if !c.answered() {
			if (c.kind == update || c.kind == note) && open[c.number] == nil {
				open[c.number] = c
			}
			continue
		}
		calls = append(calls, c)
		if h.overBrokers {
			c.complete(entries, unclaimed)
		}
		a := c.appended
		if c.durable && slices.ContainsFunc(lost, func(l logged) bool { return l.ID == a.ID }) {
			return nil, fmt.Sprintf("a durable update was acknowledged, and is lost:\n%v", c)
		}
		if a.ID == 0 || a.Duplicate {
			continue
		}
		if l, found := unclaimed[a.ID]; !found || string(l.Data) != string(a.Data) {
			return nil, fmt.Sprintf("the log has %s as %d, or another call has this id:\n%v", entries[a.ID].Data, a.ID, c)
		}
		delete(unclaimed, a.ID)
	}
	for _, id := range slices.Sorted(maps.Keys(unclaimed)) {
		l := unclaimed[id]
		c := open[l.number]
		switch {
		case l.number == 0 && l.Changes != nil:
			c = &call{kind: unknown, client: -1, entry: l.Changes, candidates: candidates}
			if h.overBrokers {
				c.candidates = guesses[l.ID]
			}
		case l.number == 0:
			c = &call{kind: note, client: -1}
		case c == nil:
			return nil, fmt.Sprintf("entry %d is of no call, or of one that had happened: %s", id, l.Data)
		}
		delete(open, l.number)
		c.end, c.appended = never, appendedOf(l, c)
		calls = append(calls, c)
	}
	if len(lost) > 0 {
		calls = append(calls, &call{kind: loss, client: -1, keep: lost[0].Prev, end: never})
	}
	return append(calls, steps...), ""
}

// appendedOf returns the answer that a call would have had.
func appendedOf(l logged, c *call) queue.Appended {
	a := queue.Appended{ID: l.ID, Prev: l.Prev, Data: l.Data}
	if c.kind == update {
		for _, op := range c.push.Update.Ops {
			if op.Kind == state.Add {
				if a.Numbers == nil {
					a.Numbers = make(map[string]int64)
				}
				var n int64
				_ = json.Unmarshal(l.Changes.Set[op.Field], &n)
				a.Numbers[op.Field] = n
			}
		}
	}
	return a
}

// searchTime is how long the search for an order may take.
const searchTime = time.Minute

// checkOrder returns an error if no order of the calls is possible.
func checkOrder(calls []*call) string {
	operations := make([]porcupine.Operation, len(calls))
	for i, c := range calls {
		operations[i] = porcupine.Operation{ClientId: c.client + 1, Input: c, Call: c.begin, Return: c.end}
	}
	outcome, info := porcupine.CheckOperationsVerbose(newModel(), operations, searchTime)
	if outcome == porcupine.Ok {
		return ""
	}
	var longest []porcupine.Operation
	for _, partial := range info.PartialLinearizationsOperations()[0] {
		if len(partial) > len(longest) {
			longest = partial
		}
	}
	return describe(outcome, calls, longest)
}

// describe returns the end of the longest order that was found, and the calls that could be next.
func describe(outcome porcupine.CheckResult, calls []*call, longest []porcupine.Operation) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%v: the longest order has %d of %d calls. Its end:\n", outcome, len(longest), len(calls))
	model := newModel()
	s := model.Init()
	done := make(map[*call]bool)
	for i, o := range longest {
		c := o.Input.(*call)
		done[c] = true
		_, s = model.Step(s, c, nil)
		if i >= len(longest)-6 {
			fmt.Fprintln(&text, c)
		}
	}
	fmt.Fprintf(&text, "The model then: %v\nThe next call is one of:\n", s)
	firstEnd := int64(1 << 62)
	for _, c := range calls {
		if !done[c] {
			firstEnd = min(firstEnd, c.end)
		}
	}
	for _, c := range calls {
		if !done[c] && c.begin < firstEnd && (c.kind != unknown || c.appended.Prev == s.(*snapshot).last) {
			fmt.Fprintln(&text, c)
		}
	}
	return text.String()
}

func (s *snapshot) String() string {
	text := fmt.Sprintf("id %d, clock %d", s.last, s.clock)
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		text += fmt.Sprintf("\n    %s: %+v", name, s.fields[name])
	}
	return text
}

// checkMarkers checks that the log has no entry that a marker reports as lost.
func checkMarkers(log []logged) string {
	for _, marker := range log {
		from, to, isMarker := queue.Loss(marker.Data)
		for _, l := range log {
			if isMarker && from < l.ID && l.ID <= to {
				return fmt.Sprintf("marker %d reports that %d is lost: %s", marker.ID, l.ID, marker.Data)
			}
		}
	}
	return ""
}

// checkFold compares the pages with the fold of the log at their ids.
func checkFold(log []logged, calls []*call) string {
	pages := make(map[int64][]*call)
	for _, c := range calls {
		if c.kind == read && c.page.Clock > 0 && c.query.Prefix == "" && c.query.Limit == 0 && c.query.Fields == nil {
			pages[c.page.ID] = append(pages[c.page.ID], c)
		}
	}
	wrong := ""
	replay.Each(entriesOf(log), func(e replay.Entry, _, after map[string]state.Shown) {
		seats := 0
		for name := range after {
			if strings.HasPrefix(name, "seat/") {
				seats++
			}
		}
		if seats > seatMax {
			wrong = fmt.Sprintf("the fold of the log at %d has %d seats", e.ID, seats)
		}
		for _, c := range pages[e.ID] {
			at := &state.Map{Fields: maps.Clone(after)}
			at.Expire(c.page.Clock)
			if got, want := pageText(c.page), string(at.Pages(0, state.Filter{State: true, Hidden: true}, 1<<30)[0]); got != want {
				wrong = fmt.Sprintf("a page at %d has\n%s\nthe fold of the log has\n%s", e.ID, got, want)
			}
		}
	})
	return wrong
}

// pageText returns the fields of a page as JSON.
func pageText(p queue.StatePage) string {
	w := state.FieldsWriter{Filter: state.Filter{State: true, Hidden: true}, Max: 1 << 30}
	for _, f := range p.Fields {
		shown := f.Show()
		w.Add(f.Name, &shown)
	}
	return string(w.JSON())
}
