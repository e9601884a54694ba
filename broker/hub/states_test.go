package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// reader is a subscriber that records the JSON of what it receives, in one string per message.
type reader struct {
	got        []string
	client     string
	backlogged bool
	gap        func(s *Subscription) (hold bool) // nil means that Gap returns false
}

func (r *reader) ClientID() string { return r.client }

func (r *reader) Backlogged() bool { return r.backlogged }
func (r *reader) MayRead() bool    { return true }
func (r *reader) Charge(int, int)  {}

func (r *reader) Gap(s *Subscription, after, id int64) (hold bool) {
	r.got = append(r.got, fmt.Sprintf("gap %d to %d", after, id))
	return r.gap != nil && r.gap(s)
}

func (r *reader) Write(b *dialect.Batch) {
	if len(b.Messages) == 0 {
		panic("a write without a message")
	}
	for line := range strings.Lines(string(b.Bytes(lineForm))) {
		e, err := wire.DecodeEvent([]byte(line))
		if err != nil {
			panic(err)
		}
		if e.Type == wire.TypeGap {
			r.got = append(r.got, fmt.Sprintf("gap event %d to %d", *e.After, *e.ID))
			continue
		}
		shown := ""
		if e.StateEvent != nil {
			changes, err := json.Marshal(e.StateEvent)
			if err != nil {
				panic(err)
			}
			shown = string(changes)
		}
		r.got = append(r.got, string(e.Data)+shown)
	}
}

// read subscribes a reader with a filter.
func (s *harness) read(filter state.Filter, after *int64) (*reader, *Subscription) {
	s.t.Helper()
	return s.readAs("", filter, after)
}

// readAs subscribes a reader of a client with a filter.
func (s *harness) readAs(client string, filter state.Filter, after *int64) (*reader, *Subscription) {
	s.t.Helper()
	pos, err := s.Acquire(s.t.Context(), "a", after)
	if err != nil {
		s.t.Fatal(err)
	}
	r, sub := &reader{client: client}, new(Subscription)
	s.do(func() {
		if !filter.State {
			s.Subscribe(sub, s.loop, r, pos)
			_ = sub.SetFilter(filter)
		} else if err := s.SubscribeState(sub, s.loop, r, pos, filter); err != nil {
			s.t.Error(err)
		}
		sub.Start()
	})
	s.settle()
	return r, sub
}

// update stores an update of channel a, and sends the hint if hinted is true.
func (s *harness) update(hinted bool, u state.Update) queue.Appended {
	s.t.Helper()
	a, err := s.queue.AppendChannel(s.t.Context(), queue.ChannelPush{Channel: "a", Update: &u})
	if err != nil {
		s.t.Fatal(err)
	}
	if hinted {
		s.Channel("a").Hint(a.ID, a.Prev, a.Data)
	}
	return a
}

// set is an operation that sets a field to 1.
func set(field string) state.Op { return state.Op{Field: field, Kind: state.Set, Value: []byte("1")} }

// everything shows the whole state and the writer.
var everything = state.Filter{State: true, By: true}

// updates changes the state in several ways, and sends a message without changes.
func (s *harness) updates(hinted bool) {
	s.update(hinted, state.Update{Ops: []state.Op{set("x"), set("seat/1"), set("$$secret")}, Data: []byte(`"both"`), Client: "tab"})
	s.update(hinted, state.Update{Ops: []state.Op{set("x")}, Client: "tab"})
	s.update(hinted, state.Update{Ops: []state.Op{set("$$secret")}})
	s.update(hinted, state.Update{Data: []byte(`"mine"`), Client: "tab"})
	plain := s.append("a", 1)[0]
	if hinted {
		s.Channel("a").Hint(plain.ID, plain.Prev, plain.Data)
	}
	s.update(hinted, state.Update{Ops: []state.Op{{Field: "seat/1", Kind: state.Delete}}})
	s.settle()
}

// TestFilters checks what subscribers with different filters receive: after hints, after a drain,
// and from the store when they resume.
func TestFilters(t *testing.T) {
	tests := []struct {
		name   string
		filter state.Filter
		want   []string
	}{
		{"data only", state.Filter{}, []string{`"both"`, `"mine"`, "0"}},
		{"with the author", state.Filter{By: true}, []string{`"both"{"by":"tab"}`, `"mine"{"by":"tab"}`, "0"}},
		{"all fields", state.Filter{State: true}, []string{`"both"{"set":{"seat/1":1,"x":1}}`, `{"set":{"x":1}}`, `"mine"`, "0", `{"del":["seat/1"]}`}},
		{"with the writer", everything, []string{
			`"both"{"set":{"seat/1":1,"x":1},"by":"tab"}`, `{"set":{"x":1},"by":"tab"}`, `"mine"{"by":"tab"}`, "0", `{"del":["seat/1"]}`,
		}},
		{"a prefix", state.Filter{State: true, Prefix: "seat/"}, []string{`"both"{"set":{"seat/1":1}}`, `"mine"`, "0", `{"del":["seat/1"]}`}},
		{"a prefix without fields", state.Filter{State: true, Prefix: "none/"}, []string{`"both"`, `"mine"`, "0"}},
	}
	for _, source := range []string{"hints", "a drain", "the store"} {
		s := newHarness(t, queue.Options{})
		first := s.append("a", 1)[0]
		var readers []*reader
		for _, test := range tests {
			if source == "the store" {
				continue
			}
			r, _ := s.read(test.filter, nil)
			readers = append(readers, r)
		}
		s.updates(source == "hints")
		if source == "a drain" {
			s.compare()
		}
		s.settle()
		for i, test := range tests {
			t.Run(source+", "+test.name, func(t *testing.T) {
				if source == "the store" {
					r, _ := s.read(test.filter, &first.ID)
					readers = append(readers, r)
				}
				s.do(func() {
					if !slices.Equal(readers[i].got, test.want) {
						t.Errorf("got %q, want %q", readers[i].got, test.want)
					}
				})
			})
		}
	}
}

// TestTailKnowsChanges checks that a tail knows whether it has changes, however they got there.
func TestTailKnowsChanges(t *testing.T) {
	s := newHarness(t, queue.Options{})
	plain := s.append("a", 1)[0]
	s.read(everything, &plain.ID)
	if s.Channel("a").tail.Load().kinds != 0 {
		t.Error("a tail without changes has some")
	}
	change := s.update(false, state.Update{Ops: []state.Op{set("x")}})
	s.compare()
	if s.Channel("a").tail.Load().kinds != changing {
		t.Error("a tail that a drain extended has no changes")
	}
	s.Tick()
	s.Tick() // drops the tail's messages
	if s.Channel("a").tail.Load().kinds != 0 {
		t.Error("a tail without messages has changes")
	}
	s.read(everything, &plain.ID)
	if tl := s.Channel("a").tail.Load(); tl.kinds != changing || tl.last != change.ID {
		t.Error("a tail to which a page was prepended has no changes")
	}
}

// TestCursorPassesWhatIsNotShown checks that a subscription advances past messages that it does not
// receive, so that the store is not read for them again.
func TestCursorPassesWhatIsNotShown(t *testing.T) {
	s := newHarness(t, queue.Options{})
	var subs []*Subscription
	none := state.Filter{State: true, Prefix: "none/"}
	for _, filter := range []state.Filter{{}, none, none} {
		_, sub := s.read(filter, nil)
		subs = append(subs, sub)
	}
	last := s.update(true, state.Update{Ops: []state.Op{set("x")}})
	s.settle()
	s.do(func() {
		for i, sub := range subs {
			if sub.Cursor() != last.ID {
				t.Errorf("subscription %d is at %d, want %d", i, sub.Cursor(), last.ID)
			}
		}
	})
}

// TestTooManyFilters checks that a channel refuses a prefix beyond the limit, but accepts
// subscriptions without a prefix, and that unused filters make room.
func TestTooManyFilters(t *testing.T) {
	s := newHarness(t, queue.Options{})
	s.append("a", 1)
	prefix := func(i int) state.Filter { return state.Filter{State: true, Prefix: fmt.Sprint(i)} }
	most := maxFilters + 1 - len(commonFilters)
	var subs []*Subscription
	for i := range most {
		_, sub := s.read(prefix(i), nil)
		subs = append(subs, sub)
	}
	s.read(everything, nil)
	s.read(prefix(7), nil)
	add := func(f state.Filter) (sub *Subscription, err error) {
		pos, err := s.Acquire(t.Context(), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		sub = new(Subscription)
		s.do(func() {
			if err = s.SubscribeState(sub, s.loop, &reader{}, pos, f); err != nil {
				s.Release(pos.Channel)
			}
		})
		return sub, err
	}
	if _, err := add(prefix(most)); !errors.Is(err, ErrFilters) {
		t.Fatalf("one prefix too many: %v", err)
	}
	s.do(func() { s.Unsubscribe(subs[100]) })
	sub, err := add(prefix(most))
	if err != nil {
		t.Fatal(err)
	}
	s.do(func() {
		if f := sub.Filter(); f != prefix(most) {
			t.Errorf("the filter is %+v", f)
		}
		if err := subs[0].SetFilter(prefix(most + 1)); !errors.Is(err, ErrFilters) || subs[0].Filter() != prefix(0) {
			t.Errorf("SetFilter: %v, the filter is %+v", err, subs[0].Filter())
		}
	})
}

// TestSetFilter checks that a subscription can see more or less of the state from now on.
func TestSetFilter(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, sub := s.read(state.Filter{}, nil)
	update := func() {
		s.update(true, state.Update{Ops: []state.Op{set("x")}, Data: []byte("1")})
		s.settle()
	}
	update()
	s.do(func() {
		if err := sub.SetFilter(everything); err != nil || !sub.Held() {
			t.Errorf("%v, held %v", err, sub.Held())
		}
	})
	update()
	s.do(sub.Start)
	update()
	s.do(func() {
		if err := sub.SetFilter(state.Filter{}); err != nil || sub.Held() {
			t.Errorf("%v, held %v", err, sub.Held())
		}
	})
	update()
	s.do(func() {
		if err := sub.SetFilter(state.Filter{By: true}); err != nil || sub.Held() || sub.Filter() != (state.Filter{By: true}) {
			t.Errorf("%v, held %v, the filter is %+v", err, sub.Held(), sub.Filter())
		}
	})
	s.update(true, state.Update{Data: []byte("2"), Client: "tab"})
	s.settle()
	s.do(func() {
		if want := []string{"1", `1{"set":{"x":1}}`, `1{"set":{"x":1}}`, "1", `2{"by":"tab"}`}; !slices.Equal(r.got, want) {
			t.Errorf("got %q, want %q", r.got, want)
		}
	})
	if n := s.Channel("a").StateSubscribers(); n != 0 {
		t.Errorf("%d state subscribers, want none", n)
	}
}

// TestFilterAfterTheEnd checks that an ended subscription sees nothing of the state: its subscriber
// may ask in Gap, after a failed write has ended the connection.
func TestFilterAfterTheEnd(t *testing.T) {
	s := newHarness(t, queue.Options{ChannelCap: 1})
	r, sub := s.read(everything, nil)
	filter := everything
	r.gap = func(sub *Subscription) (hold bool) {
		s.Unsubscribe(sub)
		filter = sub.Filter()
		return true
	}
	r.backlogged = true
	for range maxTailMessages + 1 {
		s.update(true, state.Update{Ops: []state.Op{set("x")}})
	}
	s.settle()
	s.do(func() { r.backlogged = false; sub.Resume() })
	s.settle()
	if filter != (state.Filter{}) || sub.Active() {
		t.Errorf("the filter is %+v, active %v", filter, sub.Active())
	}
}

// TestMalformedEntry checks that an entry that cannot be decoded is skipped.
func TestMalformedEntry(t *testing.T) {
	s := newHarness(t, queue.Options{})
	r, sub := s.read(everything, nil)
	a, err := s.queue.AppendChannel(context.Background(), queue.ChannelPush{Channel: "a", Data: []byte("~{")})
	if err != nil {
		t.Fatal(err)
	}
	s.Channel("a").Hint(a.ID, a.Prev, a.Data)
	s.settle()
	s.do(func() {
		if len(r.got) > 0 || sub.Cursor() != a.ID {
			t.Errorf("got %q at %d, want nothing at %d", r.got, sub.Cursor(), a.ID)
		}
	})
}

// TestPositionOfANarrowPrefix: a subscriber that sees none of many changes still receives an id now
// and then, so its position stays in the log.
func TestPositionOfANarrowPrefix(t *testing.T) {
	s := newHarness(t, queue.Options{})
	narrow, _ := s.read(state.Filter{State: true, Prefix: "x/"}, nil)
	plain, _ := s.read(state.Filter{}, nil)
	for range 3*positionEvery + 1 {
		s.update(true, state.Update{Ops: []state.Op{{Field: "y", Kind: state.Set, Value: []byte("1")}}})
	}
	s.settle()
	s.do(func() {
		if got := fmt.Sprintf("%q", narrow.got); got != `["" "" ""]` {
			t.Errorf("received %s, want three ids", got)
		}
		if len(plain.got) > 0 {
			t.Errorf("a subscriber without the state received %q", plain.got)
		}
	})
}
