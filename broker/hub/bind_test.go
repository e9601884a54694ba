package hub

import (
	"testing"

	"switchboard/queue"
)

// TestFirstSubscriberReadsTheStoreOnce checks that one read gives the subscriber its position, the
// messages that it missed, and the tail for all others.
func TestFirstSubscriberReadsTheStoreOnce(t *testing.T) {
	s := newHarness(t, queue.Options{})
	stored := s.append("a", 5)
	r, _, pos := s.subscribe("a", &stored[1].ID)
	s.settle()
	if !pos.Recovered || pos.Cursor != stored[1].ID {
		t.Errorf("position %+v", pos)
	}
	s.expect(r, stored[2:], "resumed")
	fresh, _, pos := s.subscribe("b", nil)
	s.settle()
	if !pos.Recovered || pos.Cursor != 0 {
		t.Errorf("position %+v in a channel without messages", pos)
	}
	s.expect(fresh, nil, "fresh")
	if n := s.queue.readCount(); n != 2 {
		t.Errorf("%d reads of the store for two channels, want 2", n)
	}
	more := s.append("a", 1)
	hint(s.Channel("a"), more[0])
	s.settle()
	s.expect(r, append(stored[2:5:5], more...), "resumed and hinted")
	if n := s.queue.readCount(); n != 2 {
		t.Errorf("%d reads of the store after a hint, want 2", n)
	}
}

// TestFirstSubscriberAtUnknownPosition checks a subscriber whose position the store does not know:
// it starts where the store says.
func TestFirstSubscriberAtUnknownPosition(t *testing.T) {
	s := newHarness(t, queue.Options{ChannelCap: 3})
	stored := s.append("a", 5)
	r, _, pos := s.subscribe("a", &stored[0].ID)
	s.settle()
	if pos.Recovered || pos.Cursor != stored[1].ID {
		t.Errorf("position %+v, want not recovered, after %d", pos, stored[1].ID)
	}
	s.expect(r, stored[2:], "before the floor")
	ahead := stored[4].ID + 7
	r, _, pos = s.subscribe("b", &ahead)
	s.settle()
	if pos.Recovered || pos.Cursor != 0 {
		t.Errorf("position %+v of a subscriber that is ahead", pos)
	}
	s.expect(r, nil, "ahead")
}

// TestFirstSubscriberMissedMoreThanAPage checks that the subscriber reads on from its cursor, while
// the tail begins at the channel's end.
func TestFirstSubscriberMissedMoreThanAPage(t *testing.T) {
	s := newHarness(t, queue.Options{})
	stored := s.append("a", 2*pageSize+3)
	r, _, pos := s.subscribe("a", &stored[0].ID)
	s.settle()
	if !pos.Recovered {
		t.Errorf("position %+v", pos)
	}
	s.expect(r, stored[1:], "more than a page")
}

// TestHintWhileBinding checks that a message is not lost if it arrives between the first read and
// the end of the binding, when there is no tail yet.
func TestHintWhileBinding(t *testing.T) {
	for name, hintLate := range map[string]func(*harness, queue.Appended){
		"a hint":      func(s *harness, a queue.Appended) { hint(s.Channel("a"), a) },
		"a lost hint": func(s *harness, _ queue.Appended) { s.compareNow() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, queue.Options{})
			stored := s.append("a", 2)
			var late []queue.Appended
			s.queue.afterRead = func() {
				late = s.append("a", 1)
				hintLate(s, late[0])
			}
			r, _, _ := s.subscribe("a", &stored[0].ID)
			s.settle()
			s.expect(r, append(stored[1:2:2], late...), "read and hinted")
		})
	}
}
