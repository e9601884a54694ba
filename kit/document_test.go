package kit

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rs/zerolog"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/index"
	"switchboard/queue"
)

// note is a document whose record is a text.
type note struct {
	Record[string]
	id string
}

// notes are documents in memory.
type notes struct {
	*testing.T
	Documents[*note]
	store *queue.Memory
}

func newNotes(t *testing.T) *notes {
	n := &notes{T: t, store: queue.NewMemory(queue.Options{}, func(string) []string { return nil })}
	read := queue.StateRead{Fields: []string{"$$note"}}
	n.Documents = Documents[*note]{
		Kind: "note", Prefix: "note:", Record: "$$note", States: n.store, Index: index.NewMemory(), Whole: read, Brief: read,
		Parse: func(id string, page *queue.StatePage) (*note, error) {
			one := &note{id: id}
			if len(page.Fields) == 0 {
				return one, nil
			}
			return one, one.Read(page.Fields[0].Field)
		},
		Card: func(one *note) index.Card {
			return index.Card{ID: one.id, Version: one.ID, Lists: map[string]int64{"all": 0, one.Value: 1}}
		},
		CheckID: func(id string) error { return CheckID("note", id, 8, ". -") },
		Log:     zerolog.Nop(),
	}
	return n
}

// write writes a note whose record has an id.
func (n *notes) write(id string, last int64, op state.Op) error {
	_, err := n.store.AppendChannel(n.Context(), queue.ChannelPush{Channel: n.Prefix + id, Update: &state.Update{
		Writer: state.BackendHolder, Ops: []state.Op{op}, If: []state.Condition{Same(n.Record, last)},
	}})
	return IfChanged(err)
}

// create makes notes, with their cards.
func (n *notes) create(text string, ids ...string) {
	for _, id := range ids {
		if err := n.write(id, 0, Set(n.Record, text)); err != nil {
			n.Fatal(err)
		}
		n.Show(n.Context(), n.Card(n.get(id)))
	}
}

func (n *notes) get(id string) *note {
	one, err := n.Get(n.Context(), id)
	if err != nil {
		n.Fatal(err)
	}
	return one
}

func TestDocumentsGet(t *testing.T) {
	n := newNotes(t)
	n.create("text", "a.b-1")
	if one := n.get("a.b-1"); one.Value != "text" || one.ID == 0 {
		t.Errorf("the note is %+v", one)
	}
	for id, code := range map[string]wire.ErrorCode{"none": wire.NotFound, "": wire.BadRequest, "a b": wire.BadRequest, "too-long-": wire.BadRequest} {
		if _, err := n.Get(t.Context(), id); !HasCode(err, code) {
			t.Errorf("%q: %v, want %s", id, err, code)
		}
	}
	if one, err := n.Find(t.Context(), "none"); err != nil || one.Exists() {
		t.Errorf("%+v exists, %v", one, err)
	}
}

// TestDocumentsEdit: an edit reads again what another one has changed.
func TestDocumentsEdit(t *testing.T) {
	n := newNotes(t)
	n.create("0", "a")
	attempts := 0
	_, err := n.Edit(t.Context(), "a", func(one *note) error {
		if attempts++; attempts == 1 {
			if err := n.write("a", one.ID, Set(n.Record, one.Value+" other")); err != nil {
				t.Fatal(err)
			}
		}
		return n.write("a", one.ID, Set(n.Record, one.Value+" mine"))
	})
	if err != nil || attempts != 2 || n.get("a").Value != "0 other mine" {
		t.Errorf("after %d attempts, the note is %q, %v", attempts, n.get("a").Value, err)
	}
	if _, err := n.Edit(t.Context(), "none", func(*note) error { return nil }); !HasCode(err, wire.NotFound) {
		t.Errorf("the error is %v", err)
	}
}

// TestDocumentsList: a page leaves out documents that do not exist any more, and those that its
// caller does not want.
func TestDocumentsList(t *testing.T) {
	n := newNotes(t)
	n.create("wanted", "a", "b", "c")
	n.create("other", "d")
	if err := n.write("b", n.get("b").ID, Delete(n.Record)); err != nil {
		t.Fatal(err)
	}
	list, next, err := n.List(t.Context(), index.Query{List: "all"}, func(one *note) bool { return one.Value != "other" })
	if len(list) != 2 || list[0].id != "a" || list[1].id != "c" || next != "" || err != nil {
		t.Errorf("the page has %d notes, %q, %v", len(list), next, err)
	}
	if _, _, err := n.List(t.Context(), index.Query{List: "all", Limit: MaxPage + 1}, nil); !HasCode(err, wire.BadRequest) {
		t.Errorf("a limit above all: %v", err)
	}
}

// TestDocumentsCompare finds a lost card, an old one, and one whose document is lost.
func TestDocumentsCompare(t *testing.T) {
	n := newNotes(t)
	n.create("text", "same", "lost", "old", "gone")
	if err := n.write("gone", n.get("gone").ID, Delete(n.Record)); err != nil {
		t.Fatal(err)
	}
	if err := n.write("old", n.get("old").ID, Set(n.Record, "new")); err != nil {
		t.Fatal(err)
	}
	lists := index.NewMemory()
	for _, id := range []string{"same", "old", "gone"} {
		cards, err := n.Index.Get(t.Context(), id)
		if err == nil {
			err = lists.Put(t.Context(), cards...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	n.Index = lists
	found, err := Check("notes", func(ctx context.Context, f *Findings) error {
		visit := n.Compare(f)
		for range 2 { // a finding is there once
			if err := visit(ctx, []string{"same", "lost", "old", "gone"}); err != nil {
				return err
			}
		}
		return nil
	}).Find(t.Context())
	var got []string
	for _, f := range found {
		got = append(got, f.Subject+": "+f.Problem)
	}
	want := []string{
		"note:lost: it has no card", fmt.Sprint("note:old: its card is not that of the record with the id ", n.get("old").ID),
		"note:gone: it has a card, but no record",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("it finds %q, want %q, %v", got, want, err)
	}
	if n := n.Restore("notes", n.store); n.Every == 0 || n.Name != "notes" {
		t.Errorf("the round is %+v", n)
	}
}
