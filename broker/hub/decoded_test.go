package hub

import (
	"slices"
	"testing"

	"switchboard/internal/state"
	"switchboard/queue"
)

// TestHintMessage checks that a message of this process is delivered like one that is decoded, in
// order and before its predecessor, and that its data is not decoded.
func TestHintMessage(t *testing.T) {
	messages := []state.Message{
		{By: "tab", Data: []byte("1")}, {By: "tab", Exclude: "tab", Data: []byte("2")}, {Exclude: "tab", Data: []byte("3")},
	}
	for _, early := range []bool{false, true} {
		s := newHarness(t, queue.Options{})
		tests := []struct {
			client string
			filter state.Filter
			want   []string
		}{
			{"bob", state.Filter{}, []string{"1", "2", "3"}},
			{"bob", state.Filter{By: true}, []string{`1{"by":"tab"}`, `2{"by":"tab"}`, "3"}},
			{"bob", everything, []string{`1{"by":"tab"}`, `2{"by":"tab"}`, "3"}},
			{"tab", state.Filter{By: true}, []string{`1{"by":"tab"}`}},
		}
		var readers []*reader
		for _, test := range tests {
			r, _ := s.readAs(test.client, test.filter, nil)
			readers = append(readers, r)
		}
		var stored []queue.Appended
		for _, m := range messages {
			a, err := s.queue.AppendChannel(t.Context(), queue.ChannelPush{Channel: "a", Data: m.Encode()})
			if err != nil {
				t.Fatal(err)
			}
			stored = append(stored, a)
		}
		order := []int{0, 1, 2}
		if early {
			order = []int{2, 1, 0}
		}
		c := s.Channel("a")
		setDraining := func(draining bool) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.draining = draining
		}
		setDraining(true) // no drain reads the store
		for _, i := range order {
			c.HintMessage(stored[i].ID, stored[i].Prev, []byte("~malformed"), messages[i])
		}
		setDraining(false)
		s.settle()
		s.do(func() {
			for i, test := range tests {
				if !slices.Equal(readers[i].got, test.want) {
					t.Errorf("early %v: %s with %+v got %q, want %q", early, test.client, test.filter, readers[i].got, test.want)
				}
			}
		})
	}
}
