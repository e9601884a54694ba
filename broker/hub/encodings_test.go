package hub

import (
	"slices"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// countingMaker counts the parts that it encodes.
type countingMaker struct {
	dialect.Maker
	parts int
}

func (m *countingMaker) Part(channel string, id int64, data []byte, changes *wire.StateEvent) *dialect.Message {
	m.parts++
	return m.Maker.Part(channel, id, data, changes)
}

// TestOneEncodingPerFilter checks that all subscribers with the same filter share the encoding of a
// change, also those that lag.
func TestOneEncodingPerFilter(t *testing.T) {
	s := newHarness(t, queue.Options{})
	counted := &countingMaker{Maker: maker}
	s.opts.Messages = counted
	var readers []*reader
	var subs []*Subscription
	for range 10 {
		for _, filter := range []state.Filter{everything, {State: true, Prefix: "x"}} {
			r, sub := s.read(filter, nil)
			readers, subs = append(readers, r), append(subs, sub)
		}
	}
	s.do(func() { readers[0].backlogged = true })
	s.update(true, state.Update{Ops: []state.Op{set("x")}})
	s.settle()
	s.do(func() { readers[0].backlogged = false; subs[0].Resume() })
	s.do(func() {
		if counted.parts != 2 {
			t.Errorf("%d encodings for two filters", counted.parts)
		}
		for i, r := range readers {
			if !slices.Equal(r.got, []string{`{"set":{"x":1}}`}) {
				t.Errorf("reader %d got %q", i, r.got)
			}
		}
	})
}

// TestOneEncodingPerPage checks that subscribers that read the store after the same message, one
// after the other, share the encoding until the next tick.
func TestOneEncodingPerPage(t *testing.T) {
	const changes = maxTailMessages + 50
	s := newHarness(t, queue.Options{})
	counted := &countingMaker{Maker: maker}
	s.opts.Messages = counted
	want := 0
	resume := func(r *reader, sub *Subscription, encodings int) {
		s.do(func() { r.backlogged = false; sub.Resume() })
		s.settle()
		s.do(func() {
			if want += encodings; counted.parts != want || len(r.got) != changes {
				t.Errorf("%d encodings, want %d; %d changes, want %d", counted.parts, want, len(r.got), changes)
			}
		})
	}
	var readers []*reader
	var subs []*Subscription
	for range 3 {
		r, sub := s.read(everything, nil)
		s.do(func() { r.backlogged = true })
		readers, subs = append(readers, r), append(subs, sub)
	}
	for range changes {
		s.update(true, state.Update{Ops: []state.Op{set("x")}})
	}
	s.settle()
	resume(readers[0], subs[0], changes)
	resume(readers[1], subs[1], 0)
	s.Tick()
	resume(readers[2], subs[2], changes-maxTailMessages)
}
