package kit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/kit/index"
	"switchboard/queue"
)

// channelList is States whose channels are known.
type channelList struct {
	names   []string
	err     error           // of the list, after the names
	ended   map[string]bool // channels without fields
	readErr error           // of each read
	record  int64           // the version of the records
	read    int             // records that were read
}

// ReadStates implements StateReader.
func (l *channelList) ReadStates(_ context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	pages := make([]queue.Outcome[queue.StatePage], len(reads))
	for i, read := range reads {
		if pages[i].Err = l.readErr; !l.ended[read.Channel] {
			pages[i].Value.Fields = []queue.NamedField{{Field: &state.Field{ID: l.record}}}
			l.read += len(read.Fields)
		}
	}
	return pages
}

// StateChannels implements States.
func (l *channelList) StateChannels(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, name := range l.names {
			if !yield(name, nil) {
				return
			}
		}
		if l.err != nil {
			yield("", l.err)
		}
	}
}

// TestRestore has more documents than a batch, of which every other one has a card. Some of the
// others have ended.
func TestRestore(t *testing.T) {
	ctx := t.Context()
	lists := index.NewMemory()
	channels := &channelList{names: []string{"other:1"}, ended: map[string]bool{}}
	var want []string
	for i := range 2*restoreBatch + 10 {
		id := fmt.Sprintf("d%03d", i)
		channels.names = append(channels.names, "doc:"+id)
		if channels.ended["doc:"+id] = i%10 == 0; i%10 == 0 {
			continue
		}
		if i%2 == 0 {
			want = append(want, id)
		} else if err := lists.Put(ctx, index.Card{ID: id, Version: 1, Lists: map[string]int64{"all": 0}}); err != nil {
			t.Fatal(err)
		}
	}
	var others []string
	round := Restore(CheckOptions{Index: lists, States: channels}, Restored{
		Name: "docs", Prefix: "doc:",
		Other: func(_ context.Context, channel string) error {
			others = append(others, channel)
			return nil
		},
	})
	if n, err := round.Do(ctx); n != len(want) || err != nil {
		t.Errorf("restored %d, %v, want %d", n, err, len(want))
	}
	tasks, err := lists.Take(ctx, 1000, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	var due []string
	for _, task := range tasks {
		due = append(due, task.ID)
	}
	if slices.Sort(due); !slices.Equal(due, want) {
		t.Errorf("due are %v, want %v", due, want)
	}
	if !slices.Equal(others, []string{"other:1"}) {
		t.Errorf("the other channels are %v", others)
	}
}

// TestRestoreFails: an error of the list of channels, of a read, or of the call for others ends the
// round.
func TestRestoreFails(t *testing.T) {
	broken := errors.New("the store does not answer")
	for _, c := range []struct {
		states channelList
		other  func(context.Context, string) error
	}{
		{channelList{err: broken}, nil},
		{channelList{names: []string{"doc:1"}, readErr: broken}, nil},
		{channelList{names: []string{"other:1"}}, func(context.Context, string) error { return broken }},
	} {
		o := CheckOptions{Index: index.NewMemory(), States: &c.states}
		if _, err := Restore(o, Restored{Name: "docs", Prefix: "doc:", Other: c.other}).Do(t.Context()); !errors.Is(err, broken) {
			t.Errorf("the error is %v", err)
		}
	}
}

// TestRestoreOlder has documents whose card is older than the record, or as old. Each is compared
// in one round of some, after a round that counts them.
func TestRestoreOlder(t *testing.T) {
	ctx := t.Context()
	lists := index.NewMemory()
	channels := channelList{record: 7}
	want, old := map[string]bool{}, 0
	for i := range 2*restoreRecords + 1 { // three parts
		id := fmt.Sprint("d", i)
		channels.names = append(channels.names, "doc:"+id)
		if want[id] = i%10 == 0; want[id] {
			old++
		}
		if err := lists.Put(ctx, index.Card{ID: id, Version: map[bool]int64{true: 6, false: 7}[want[id]], Lists: map[string]int64{"all": 0}}); err != nil {
			t.Fatal(err)
		}
	}
	round := Restore(CheckOptions{Index: lists, States: &channels}, Restored{Name: "docs", Prefix: "doc:", Record: "$record"})
	restored := 0
	for i := range 4 {
		channels.read = 0
		n, err := round.Do(ctx)
		if err != nil || i == 0 && channels.read > 0 || channels.read > restoreRecords {
			t.Errorf("round %d has read %d records, %v", i, channels.read, err)
		}
		restored += n
	}
	tasks, err := lists.Take(ctx, len(channels.names), time.Minute)
	if err != nil || len(tasks) != old || restored != old {
		t.Errorf("%d of %d are due, and %d were counted, %v", len(tasks), old, restored, err)
	}
	for _, task := range tasks {
		if !want[task.ID] {
			t.Errorf("%s is due, and its card is not old", task.ID)
		}
	}
}
