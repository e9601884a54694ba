package hub

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/state"
	"switchboard/queue"
)

// erase erases a message of channel a, and sends the hint if hinted is true.
func (s *harness) erase(id int64, hinted bool) queue.Erased {
	s.t.Helper()
	e, err := s.queue.EraseMessage(s.t.Context(), queue.Erase{Channel: "a", ID: id})
	if err != nil {
		s.t.Fatal(err)
	}
	if hinted {
		s.Channel("a").Hint(e.ID, e.Prev, e.Data)
	}
	return e
}

// TestErase checks what subscribers receive of messages that are erased: those that have them,
// those that resume from the tail, and those that resume from the store. Without hints, a round
// reads the reports from the store.
func TestErase(t *testing.T) {
	filters := []state.Filter{{}, {By: true}, everything, {State: true, Prefix: "none/"}}
	for _, source := range []string{"hints", "a drain"} {
		t.Run(source, func(t *testing.T) {
			s := newHarness(t, queue.Options{})
			first := s.append("a", 1)[0]
			live := make([]*reader, len(filters))
			for i, filter := range filters {
				live[i], _ = s.readAs("bob", filter, &first.ID)
			}
			ids := s.erasable()
			s.settle()
			for _, r := range live {
				r.got = nil
			}
			before := s.Channel("a").tail.Load()
			held := slices.Clone(before.messages)
			reports := []string{}
			for _, id := range ids {
				s.erase(id, source == "hints")
				reports = append(reports, fmt.Sprintf(`{"erase":%d}`, id))
			}
			if source == "a drain" {
				s.compare()
			}
			s.settle()
			if !slices.Equal(before.messages, held) {
				t.Error("the array of an earlier tail has changed")
			}
			wantBytes(t, s.Channel("a").tail.Load())
			s.do(func() {
				for i, r := range live {
					if !slices.Equal(r.got, reports) {
						t.Errorf("%+v: got %q, want %q", filters[i], r.got, reports)
					}
				}
			})
			s.wantErased(filters, first.ID, reports, "the tail")
			s.Channel("a").dropTail()
			s.wantErased(filters, first.ID, reports, "the store")
		})
	}
}

// erasable stores a message of the backend, one of a client, one with an excluded client, and a
// change with data, and sends their hints. It returns their ids.
func (s *harness) erasable() (ids []int64) {
	s.t.Helper()
	for _, e := range []state.Entry{
		{Data: []byte(`"gone"`), By: "amy"}, {Data: []byte(`"gone"`), By: "amy", Exclude: "bob"}, {Data: []byte(`"gone"`), Exclude: "bob"},
	} {
		a, err := s.queue.AppendChannel(s.t.Context(), queue.ChannelPush{Channel: "a", Data: e.Encode()})
		if err != nil {
			s.t.Fatal(err)
		}
		s.Channel("a").Hint(a.ID, a.Prev, a.Data)
		ids = append(ids, a.ID)
	}
	plain := s.append("a", 1)[0]
	s.Channel("a").Hint(plain.ID, plain.Prev, plain.Data)
	change := s.update(true, state.Update{Ops: []state.Op{set("x")}, Data: []byte(`"gone"`), Client: "amy"})
	return append(ids, plain.ID, change.ID)
}

// dropTail drops the messages of the tail, so that subscribers read the store.
func (c *Channel) dropTail() { c.setTail(c.tail.Load().withoutMessages()) }

// wantBytes checks that a tail knows its bytes.
func wantBytes(t *testing.T, tail *tail) {
	t.Helper()
	var sum int32
	for _, m := range tail.messages {
		sum += int32(m.Size())
	}
	if tail.bytes != sum {
		t.Errorf("the tail has %d bytes, want %d", tail.bytes, sum)
	}
}

// wantErased checks what readers with the filters receive after an id: the reports, and of the
// erased messages only the change of x.
func (s *harness) wantErased(filters []state.Filter, after int64, reports []string, source string) {
	s.t.Helper()
	for _, filter := range filters {
		want := reports
		if filter.Shows("x") {
			want = append([]string{`{"set":{"x":1}}`}, reports...)
		}
		r, _ := s.readAs("bob", filter, &after)
		s.do(func() {
			got := slices.DeleteFunc(r.got, func(text string) bool { return text == "" })
			if !slices.Equal(got, want) {
				s.t.Errorf("from %s with %+v: got %q, want %q", source, filter, got, want)
			}
		})
	}
}

// TestEraseOvertakesAPage: a page that was read before the erasure of its message is added to the
// front of the tail after it, and the newest page of the store still has the message.
func TestEraseOvertakesAPage(t *testing.T) {
	s := newHarness(t, queue.Options{})
	first := s.append("a", 1)[0]
	_, _ = s.read(state.Filter{}, nil)
	ids := s.erasable()
	c := s.Channel("a")
	c.dropTail()
	stale, _, err := c.pageAfter(queue.ChannelRead{Channel: "a", After: first.ID, Limit: pageSize})
	if err != nil {
		t.Fatal(err)
	}
	reports := []string{}
	for _, id := range ids {
		s.erase(id, true)
		reports = append(reports, fmt.Sprintf(`{"erase":%d}`, id))
	}
	with := c.tail.Load()
	c.dropTail()
	s.wantErased([]state.Filter{{}, everything}, first.ID, reports, "the store, with the newest page")
	c.setTail(with)
	c.prependToTail(first.ID, stale)
	wantBytes(t, c.tail.Load())
	for _, m := range c.tail.Load().messages {
		if strings.Contains(string(m.Data), "gone") {
			t.Errorf("the tail has message %d", m.ID)
		}
	}
	s.wantErased([]state.Filter{{}, everything}, first.ID, reports, "the tail")
}

// setTail replaces the tail.
func (c *Channel) setTail(t *tail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setTailLocked(t)
}
