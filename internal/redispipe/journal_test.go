package redispipe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/note"
	"switchboard/internal/redistest"
)

// journal is a Journal that notes each pipeline in a list of the node.
type journal struct {
	key func(node any) string

	mu    sync.Mutex // guards the fields below
	begun []string   // for each pipeline, its names
	open  int        // pipelines without End
}

type journalEntry struct {
	j   *journal
	cmd redis.Cmder
}

func (j *journal) Begin(ctx context.Context, node any, names []note.Name) Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.begun = append(j.begun, fmt.Sprint(names))
	j.open++
	return &journalEntry{j, redis.NewIntCmd(ctx, "rpush", j.key(node), fmt.Sprint(names))}
}

func (e *journalEntry) Commands() []redis.Cmder { return []redis.Cmder{e.cmd} }

func (e *journalEntry) End() {
	e.j.mu.Lock()
	defer e.j.mu.Unlock()
	e.j.open--
}

func noted(script *BatchScript, key string) Target {
	return Target{Script: script, Keys: []string{key}, Note: note.Name{Kind: 'x', Name: key}}
}

// TestJournal checks that each pipeline with Notes has one entry, of all targets of a shared run,
// and that a pipeline without them has none. An entry ends before the callers have the answers.
func TestJournal(t *testing.T) {
	pre := prefix()
	j := &journal{key: func(any) string { return pre + "notes" }}
	seen := &trips{}
	p := New(single.Client(t), Options{Journal: j, Observe: seen.observe})
	add, durable := &BatchScript{Script: script(t, count)}, durable(t, count)
	if err := single.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	run := func(want string, targets ...Target) {
		t.Helper()
		j.begun = nil
		p.EvalEach(t.Context(), targets...)
		if got := fmt.Sprint(j.begun); got != want || j.open != 0 {
			t.Errorf("%s, %d without an end; want %s", got, j.open, want)
		}
	}
	run(fmt.Sprintf("[[{120 %sa} {120 %sb}]]", pre, pre), noted(add, pre+"a"), Target{Script: add, Keys: []string{pre + "c"}}, noted(add, pre+"b"))
	run("[]", Target{Script: add, Keys: []string{pre + "a"}})
	run(fmt.Sprintf("[[{120 %sd}]]", pre), noted(durable, pre+"d"))
	j.begun = nil
	if _, err := p.EvalNoted(t.Context(), note.Name{Kind: 'x', Name: "e"}, add.Script, []string{pre + "a"}); err != nil || fmt.Sprint(j.begun) != "[[{120 e}]]" {
		t.Error(j.begun, err)
	}
	seen.want(t, 2, 2, 1, 3, 2) // with the source; again; without a note; with a WAIT; a single script
	if n := single.Client(t).LLen(t.Context(), pre+"notes").Val(); n != 4 {
		t.Errorf("%d entries, want 4: one for each pipeline, the repeated one included", n)
	}
}

// TestJournalInCluster checks that the entry of a redirected command is on the node that executes
// it.
func TestJournalInCluster(t *testing.T) {
	own := redistest.StartCluster(t, 2)
	client := own.Client(t)
	keys := keysOn(t, own.Masters)
	notes := make(map[string]string) // by address
	for i, master := range own.Masters {
		notes[master.Addr] = "{" + keys[i] + "}notes"
	}
	j := &journal{key: func(node any) string { return notes[node.(*redis.Client).Options().Addr] }}
	p := New(client, Options{Journal: j})
	s := &BatchScript{Script: script(t, count)}
	key := ""
	for n := 0; key == ""; n++ { // not in the slot of the notes
		if master, _, err := own.Of(t.Context(), fmt.Sprint("k", n)); err == nil && master == own.Masters[0] {
			key = fmt.Sprint("k", n)
		}
	}
	incr := func(want int64) {
		t.Helper()
		if a := p.EvalEach(t.Context(), noted(s, key))[0]; a.Value != want || a.Err != nil {
			t.Errorf("%v, %v; want %d", a.Value, a.Err, want)
		}
	}
	want := func(master, entries int64) {
		t.Helper()
		if n := client.LLen(t.Context(), notes[own.Masters[master].Addr]).Val(); n != entries {
			t.Errorf("%d entries on master %d, want %d", n, master, entries)
		}
	}
	incr(1)
	want(0, 2) // the second one with the source
	if err := own.MoveSlot(t.Context(), key, own.Masters[0], own.Masters[1], func() { incr(2); want(1, 2) }); err != nil {
		t.Fatal(err)
	}
	incr(3)
	want(1, 3)
	if got := slices.Compact(j.begun); len(got) != 1 || j.open != 0 {
		t.Errorf("notes %q, %d open", got, j.open)
	}
}
