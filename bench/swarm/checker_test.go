package swarm

import (
	"strings"
	"testing"
)

// TestChecker checks the messages that three subscribers of one channel received.
func TestChecker(t *testing.T) {
	for _, tc := range []struct {
		name     string
		received [3][]int64
		pushed   []int64
		faults   []string // a part of each description
	}{
		{name: "correct", received: [3][]int64{{1, 2, 5}, {1, 2, 5}, {1, 2, 5}}, pushed: []int64{2, 1, 5}},
		{name: "nothing pushed", received: [3][]int64{}, pushed: nil},
		{
			name: "one lost", received: [3][]int64{{1, 2, 5}, {1, 5}, {1, 2, 5}}, pushed: []int64{1, 2, 5},
			faults: []string{"s1: message 2 has id 5, others have 2", "s1: 2 messages instead of 3"},
		},
		{
			name: "one lost at the end", received: [3][]int64{{1, 2}, {1}, {1, 2}}, pushed: []int64{1, 2},
			faults: []string{"s1: 1 messages instead of 2"},
		},
		{
			name: "duplicate at the first subscriber", received: [3][]int64{{1, 1, 2}, {1, 2}, {1, 2}}, pushed: []int64{1, 2},
			faults: []string{"s0: message 2 has id 1, after 1", "s0: 3 messages instead of 2"},
		},
		{
			name: "duplicate at a later subscriber", received: [3][]int64{{1, 2}, {1, 1, 2}, {1, 2}}, pushed: []int64{1, 2},
			faults: []string{"s1: message 2 has id 1, others have 2", "s1: 3 messages instead of 2"},
		},
		{
			name: "out of order", received: [3][]int64{{1, 2}, {1, 2}, {2, 1}}, pushed: []int64{1, 2},
			faults: []string{"s2: message 1 has id 2, others have 1"},
		},
		{
			name: "lost for all", received: [3][]int64{{1, 5}, {1, 5}, {1, 5}}, pushed: []int64{1, 2, 5},
			faults: []string{"pushed with id 2 and delivered as 5", "s0: 2", "s1: 2", "s2: 2"},
		},
		{
			name: "never pushed", received: [3][]int64{{1, 7}, {1, 7}, {1, 7}}, pushed: []int64{1},
			faults: []string{"id 7 was delivered and never pushed", "s0: 2", "s1: 2", "s2: 2"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := &Swarm{
				opts: Options{Channels: []string{"c"}, Client: "s"}, conns: make([]conn, 3),
				checker: checker{ids: make([][]int64, 1), publishers: 1},
			}
			for i, ids := range tc.received {
				for _, id := range ids {
					s.checker.check(&s.conns[i].progress, id, func() string { return s.client(i) })
				}
			}
			wrong, faults := s.Verify([][]int64{tc.pushed})
			if wrong != len(tc.faults) {
				t.Fatalf("%d faults, want %d: %q", wrong, len(tc.faults), faults)
			}
			for i, want := range tc.faults {
				if !matches(faults[i], want) {
					t.Errorf("fault %d: %s; want %s", i, faults[i], want)
				}
			}
		})
	}
}

// matches reports whether got contains both parts of want, which are separated by ": ". got may
// have more text between them.
func matches(got, want string) bool {
	subscriber, fault, ok := strings.Cut(want, ": ")
	return strings.Contains(got, subscriber) && (!ok || strings.Contains(got, fault))
}

func TestSubscribers(t *testing.T) {
	s := &Swarm{opts: Options{Channels: make([]string, 3)}, conns: make([]conn, 11)}
	for channel, want := range []int{4, 4, 3} {
		if got := s.Subscribers(channel); got != want {
			t.Errorf("channel %d has %d subscribers, want %d", channel, got, want)
		}
	}
}

// TestPublishers checks that messages of two publishers may be interleaved, but not reordered
// within one publisher.
func TestPublishers(t *testing.T) {
	for name, tc := range map[string]struct {
		received, pushed []int64
		fault            string
	}{
		"interleaved": {received: []int64{2, 1, 4, 3, 5}, pushed: []int64{1, 3, 5, 2, 4}},
		"reordered":   {received: []int64{1, 5, 3}, pushed: []int64{1, 3, 5}, fault: "id 3, after 5 of the same publisher"},
		"duplicate":   {received: []int64{1, 2, 1}, pushed: []int64{1, 2}, fault: "id 1, after 1"},
		"lost":        {received: []int64{2, 3}, pushed: []int64{1, 2, 3}, fault: "pushed with id 1"},
	} {
		c := checker{ids: make([][]int64, 1), publishers: 2}
		var p progress
		for _, id := range tc.received {
			c.check(&p, id, func() string { return "" })
		}
		c.compare("c", 0, tc.pushed)
		if got := strings.Join(c.faults, "\n"); !strings.Contains(got, tc.fault) || tc.fault == "" && got != "" {
			t.Errorf("%s: got %q, want %q", name, got, tc.fault)
		}
	}
}

func BenchmarkDeliver(b *testing.B) {
	s, err := New(Options{Addr: "127.0.0.1:1", Dialect: &Switchboard{}, Connections: 1, Channels: []string{"bench-0"}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	line := append(messageHead("bench-0"), `735325130218701,"data":`...)
	line = append(AppendPayload(line, 1, 0), "}\n"...)
	s.conns[0].state = ready
	b.ReportAllocs()
	for b.Loop() {
		s.conns[0].progress.seen = 0
		if n, err := s.consume(0, line); n != len(line) || err != nil {
			b.Fatal(n, err)
		}
	}
	if s.checker.wrong > 0 {
		b.Fatal(s.checker.faults)
	}
}
