package hub

import (
	"slices"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/queue"
)

// log is a Follower that records what it receives.
type log struct {
	ids  []int64
	lost bool
}

func (l *log) Append(messages []*dialect.Message) {
	for _, m := range messages {
		l.ids = append(l.ids, m.ID)
	}
}
func (l *log) Lost() { l.lost = true }

// TestFollow checks that a follower receives all messages after an id, and learns when the tail
// begins anew.
func TestFollow(t *testing.T) {
	s := newHarness(t, queue.Options{ChannelCap: 5})
	s.read(everything, nil)
	c := s.Channel("a")
	push := func(n int) (ids []int64) {
		for _, a := range s.append("a", n) {
			hint(c, a)
			ids = append(ids, a.ID)
		}
		s.settle()
		return ids
	}
	stored := push(3)
	var l log
	if !c.Follow(&l, stored[0]) {
		t.Fatal("the tail does not reach back to its first message")
	}
	stored = append(stored, push(2)...)
	if !slices.Equal(l.ids, stored[1:]) {
		t.Errorf("got %v, want %v", l.ids, stored[1:])
	}
	if c.Follow(new(log), stored[0]-1) {
		t.Error("an unknown id is accepted")
	}
	s.append("a", 6) // without hints; the first of them is trimmed
	s.compare()
	if !l.lost {
		t.Error("the follower does not learn that messages are missing")
	}
	stored = push(1)
	if slices.Contains(l.ids, stored[0]) {
		t.Error("the follower receives messages after Lost")
	}
	var unfollowed log
	if !c.Follow(&unfollowed, stored[0]) {
		t.Fatal("the tail does not reach back to its last message")
	}
	c.Unfollow(&unfollowed)
	if push(1); len(unfollowed.ids) > 0 {
		t.Error("the follower receives messages after Unfollow")
	}
}

// TestFollowerAheadOfTheTail: the store returns a state before the hub knows its last message. If
// that message is lost, the follower is, and the broker asks the store for it.
func TestFollowerAheadOfTheTail(t *testing.T) {
	for name, lost := range map[string]bool{"known later": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, queue.Options{})
			var asked []int64
			s.opts.Lost = func(_ string, id int64) { asked = append(asked, id) }
			s.read(everything, nil)
			c, stored := s.Channel("a"), s.append("a", 2)
			ahead := stored[1].ID
			if lost {
				ahead++ // stored after these two, and lost in a failover
			}
			var l log
			if !c.Follow(&l, ahead) {
				t.Fatal("a state that is newer than the tail is refused")
			}
			hint(c, stored[0])
			hint(c, stored[1])
			s.settle()
			if l.lost || len(l.ids) != 2 {
				t.Fatalf("before the end: lost %v, got %v", l.lost, l.ids)
			}
			c.Hint(ahead+1, stored[1].ID, []byte("1"))
			s.settle()
			if l.lost != lost || lost != (len(asked) == 1 && asked[0] == ahead) {
				t.Errorf("lost %v, the broker asks for %v; want %v", l.lost, asked, lost)
			}
		})
	}
}
