package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"switchboard/kit/index"
	"switchboard/queue"
)

// TestEachBatch has more documents of two kinds than a batch. Some channels come twice.
func TestEachBatch(t *testing.T) {
	var s channelList
	want := map[string][]string{}
	for i := range 2*checkBatch + 10 {
		for _, prefix := range []string{"a:", "b:"} {
			id := fmt.Sprint(i)
			s.names, want[prefix] = append(s.names, prefix+id, prefix+"0", "other:"+id), append(want[prefix], id)
		}
	}
	got := map[string][]string{}
	visit := func(prefix string) Visit {
		return func(_ context.Context, ids []string) error {
			if got[prefix] = append(got[prefix], ids...); len(ids) == 0 || len(ids) > checkBatch {
				t.Errorf("a batch of %d", len(ids))
			}
			return nil
		}
	}
	known, err := EachBatch(t.Context(), &s, map[string]Visit{"a:": visit("a:"), "b:": visit("b:")})
	if err != nil || len(known) != len(want["a:"])+len(want["b:"]) || known["other:1"] {
		t.Errorf("%d channels are known, %v", len(known), err)
	}
	for prefix := range want {
		if !slices.Equal(got[prefix], want[prefix]) {
			t.Errorf("%s visits %d documents, want %d", prefix, len(got[prefix]), len(want[prefix]))
		}
	}
}

// TestEachBatchFails: an error of the list of channels, or of a visit, ends the look.
func TestEachBatchFails(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		s     channelList
		visit error
	}{
		"the list": {s: channelList{err: broken}}, "a visit": {s: channelList{names: []string{"a:1"}}, visit: broken},
	} {
		visit := func(context.Context, []string) error { return c.visit }
		if _, err := EachBatch(t.Context(), &c.s, map[string]Visit{"a:": visit}); !errors.Is(err, broken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEachUnknown visits the cards of several pages that have no known channel.
func TestEachUnknown(t *testing.T) {
	lists, known := index.NewMemory(), map[string]bool{}
	var want []string
	for i := range 2*checkBatch + 10 {
		id := fmt.Sprintf("%03d", i)
		if known["a:"+id] = i%2 == 0; i%2 != 0 {
			want = append(want, id)
		}
		if err := lists.Put(t.Context(), index.Card{ID: id, Version: 1, Lists: map[string]int64{"all": 0}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := EachUnknown(t.Context(), lists, "all", "a:", known, func(_ context.Context, ids []string) error {
		got = append(got, ids...)
		return nil
	})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("it visits %d documents, want %d, %v", len(got), len(want), err)
	}
}

// pages is a state of three pages, of which the last read fails if err is set.
type pages struct {
	channelList
	err error
}

// ReadStates implements StateReader.
func (p *pages) ReadStates(_ context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	next := map[string]string{"": "b", "b": "c"}[reads[0].Cursor]
	o := queue.Outcome[queue.StatePage]{Value: queue.StatePage{Clock: int64(len(reads[0].Cursor)), Next: next}}
	if reads[0].Cursor == "c" {
		o.Err = p.err
	}
	return []queue.Outcome[queue.StatePage]{o}
}

func TestStatePages(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		err  error
		want int
	}{{nil, 3}, {broken, 2}} {
		read, last := 0, error(nil)
		for page, err := range StatePages(t.Context(), &pages{err: c.err}, queue.StateRead{Channel: "a:1"}) {
			if last = err; err == nil && page != nil {
				read++
			}
		}
		if read != c.want || !errors.Is(last, c.err) {
			t.Errorf("%d pages, %v, want %d, %v", read, last, c.want, c.err)
		}
	}
}
