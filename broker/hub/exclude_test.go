package hub

import (
	"fmt"
	"slices"
	"testing"

	"switchboard/internal/state"
	"switchboard/queue"
)

// excluding stores messages of which some exclude the client "tab", and sends their hints if hinted
// is true. It returns the last of them.
func (s *harness) excluding(hinted bool) (last queue.Appended) {
	s.t.Helper()
	for _, e := range []state.Entry{
		{Data: []byte("1"), By: "tab"}, {Data: []byte("2"), By: "tab", Exclude: "tab"}, {Data: []byte("3"), Exclude: "other"},
	} {
		var err error
		if last, err = s.queue.AppendChannel(s.t.Context(), queue.ChannelPush{Channel: "a", Data: e.Encode()}); err != nil {
			s.t.Fatal(err)
		}
		if hinted {
			s.Channel("a").Hint(last.ID, last.Prev, last.Data)
		}
	}
	last = s.update(hinted, state.Update{Ops: []state.Op{set("x")}, Data: []byte("4"), Client: "tab", Exclude: "tab"})
	return last
}

// TestExclude checks what an excluded client receives: after hints, after a drain, and from the
// store when it resumes. Its cursor moves on.
func TestExclude(t *testing.T) {
	tests := []struct {
		client string
		filter state.Filter
		want   []string
	}{
		{"bob", state.Filter{}, []string{"1", "2", "3", "4"}},
		{"tab", state.Filter{}, []string{"1", "3"}}, // the filter of the one before
		{"tab", state.Filter{By: true}, []string{`1{"by":"tab"}`, "3"}},
		{"tab", everything, []string{`1{"by":"tab"}`, "3", `{"set":{"x":1},"by":"tab"}`}},
		{"tab", state.Filter{State: true, Prefix: "none/"}, []string{"1", "3"}},
		{"other", state.Filter{}, []string{"1", "2", "4"}},
		{"bob", everything, []string{`1{"by":"tab"}`, `2{"by":"tab"}`, "3", `4{"set":{"x":1},"by":"tab"}`}},
	}
	for _, source := range []string{"hints", "a drain", "the store"} {
		t.Run(source, func(t *testing.T) {
			s := newHarness(t, queue.Options{})
			first := s.append("a", 1)[0]
			var readers []*reader
			var subs []*Subscription
			open := func() {
				for _, test := range tests {
					r, sub := s.readAs(test.client, test.filter, &first.ID)
					readers, subs = append(readers, r), append(subs, sub)
				}
			}
			if source != "the store" {
				open()
			}
			last := s.excluding(source == "hints")
			if source == "a drain" {
				s.compare()
			}
			s.settle()
			if source == "the store" {
				open()
			}
			s.do(func() {
				for i, test := range tests {
					if !slices.Equal(readers[i].got, test.want) || subs[i].Cursor() != last.ID {
						t.Errorf("%s with %+v: got %q up to %d, want %q up to %d",
							test.client, test.filter, readers[i].got, subs[i].Cursor(), test.want, last.ID)
					}
				}
			})
		})
	}
}

// TestPositionOfAnExcludedClient: a client that receives none of many messages still receives an id
// now and then, so its position stays in the log. Other clients receive the whole message.
func TestPositionOfAnExcludedClient(t *testing.T) {
	for _, filter := range []state.Filter{{}, {By: true}, everything} {
		s := newHarness(t, queue.Options{})
		excluded, _ := s.readAs("tab", filter, nil)
		other, _ := s.readAs("bob", filter, nil)
		entry := state.Entry{Data: []byte("1"), Exclude: "tab"}
		for range 3*positionEvery + 1 {
			a, err := s.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "a", Data: entry.Encode()})
			if err != nil {
				t.Fatal(err)
			}
			s.Channel("a").Hint(a.ID, a.Prev, a.Data)
		}
		s.settle()
		s.do(func() {
			if got := fmt.Sprintf("%q", excluded.got); got != `["" "" ""]` {
				t.Errorf("%+v: received %s, want three ids", filter, got)
			}
			if len(other.got) != 3*positionEvery+1 || slices.Contains(other.got, "") {
				t.Errorf("%+v: another client received %q", filter, other.got)
			}
		})
	}
}
