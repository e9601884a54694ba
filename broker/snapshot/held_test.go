package snapshot

import (
	"strings"
	"testing"

	"switchboard/internal/state"
	"switchboard/queue"
)

// TestHeldPagesCount checks that pages that subscribers hold count once, together with the views,
// until the last subscriber releases them.
func TestHeldPagesCount(t *testing.T) {
	const size = 10_000
	s := newServer(t, newStore(queue.Options{}), "a", 9*size/2, false) // a view and its pages take 2 times the size
	value := `"` + strings.Repeat("v", size) + `"`
	c, _ := s.subscribe("room")
	s.push("room", state.Update{Ops: []state.Op{set("x", value)}})
	series, _ := s.pages(c, 0, "")
	before := s.Bytes()
	for range 2 {
		s.Hold(c, series)
		s.Tick()
		if n := s.Bytes(); n != before {
			t.Errorf("%d bytes with pages that the view has too, want %d", n, before)
		}
	}
	for range 3 { // the view drops the pages
		s.Tick()
	}
	if n := s.Bytes(); n != before {
		t.Errorf("%d bytes with pages that only subscribers hold, want %d", n, before)
	}

	s.push("room", state.Update{Ops: []state.Op{set("x", value), set("y", "1")}})
	s.pages(c, series.ID+1, "")
	other, _ := s.subscribe("other")
	s.push("other", state.Update{Ops: []state.Op{set("x", value)}})
	s.pages(other, 0, "")
	if v := s.views["room"]; v.element != nil {
		t.Error("the least recently used view has its fields, although the bytes exceed the limit with the held pages")
	}
	with := s.Bytes()
	s.Release(c, series)
	if n := s.Bytes(); n != with {
		t.Errorf("%d bytes after one of two subscribers has read the pages, want %d", n, with)
	}
	s.Release(c, series)
	if n := s.Bytes(); n != with-series.bytes {
		t.Errorf("%d bytes after both have read them, want %d", n, with-series.bytes)
	}
}
