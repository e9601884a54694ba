package hub

import (
	"testing"

	"switchboard/queue"
)

// TestFirstSubscriberReadsTheStoreOnce: his place, what he missed, and the tail for all others come by the same read.
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
	s.expect(r, append(stored[2:5:5], more...), "resumed and told")
	if n := s.queue.readCount(); n != 2 {
		t.Errorf("%d reads of the store behind a hint, want 2", n)
	}
}

// TestFirstSubscriberFromElsewhere: whoever has seen what the store does not know starts where it says.
func TestFirstSubscriberFromElsewhere(t *testing.T) {
	s := newHarness(t, queue.Options{ChannelCap: 3})
	stored := s.append("a", 5)
	r, _, pos := s.subscribe("a", &stored[0].ID)
	s.settle()
	if pos.Recovered || pos.Cursor != stored[1].ID {
		t.Errorf("position %+v, want not recovered, behind %d", pos, stored[1].ID)
	}
	s.expect(r, stored[2:], "behind the floor")
	ahead := stored[4].ID + 7
	r, _, pos = s.subscribe("b", &ahead)
	s.settle()
	if pos.Recovered || pos.Cursor != 0 {
		t.Errorf("position %+v of one who is ahead", pos)
	}
	s.expect(r, nil, "ahead")
}

// TestFirstSubscriberBehindMoreThanAPage: he reads on from his cursor, and the tail begins at the end.
func TestFirstSubscriberBehindMoreThanAPage(t *testing.T) {
	s := newHarness(t, queue.Options{})
	stored := s.append("a", 2*pageSize+3)
	r, _, pos := s.subscribe("a", &stored[0].ID)
	s.settle()
	if !pos.Recovered {
		t.Errorf("position %+v", pos)
	}
	s.expect(r, stored[1:], "far behind")
}

// TestToldWhileAChannelIsBound: what comes between the read and the binding is not lost, though a hint of
// it finds no tail yet.
func TestToldWhileAChannelIsBound(t *testing.T) {
	for name, tell := range map[string]func(*harness, queue.Appended){
		"a hint":      func(s *harness, a queue.Appended) { hint(s.Channel("a"), a) },
		"a lost hint": func(s *harness, _ queue.Appended) { s.MarkAllDirty() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, queue.Options{})
			stored := s.append("a", 2)
			var late []queue.Appended
			s.queue.afterRead = func() {
				late = s.append("a", 1)
				tell(s, late[0])
			}
			r, _, _ := s.subscribe("a", &stored[0].ID)
			s.settle()
			s.expect(r, append(stored[1:2:2], late...), "read and told")
		})
	}
}
