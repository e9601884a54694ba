package snapshot

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/queue"
)

// TestPages checks the pages of an empty and of a large state, and a prefix.
func TestPages(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, _ := s.subscribe("room")
	if series, fields := s.pages(c, 0, ""); len(series.Pages) != 1 || len(fields) != 0 {
		t.Errorf("an empty state has %d pages and %q", len(series.Pages), fields)
	} else if text := string(series.Pages[0].Prepared.Payload()); !strings.HasSuffix(text, `"first":true,"fields":{}}`) {
		t.Errorf("the page of an empty state is %s", text)
	}
	var want []string
	large := `"` + strings.Repeat("v", 3000) + `"`
	for i := range 50 {
		name := fmt.Sprintf("f%02d", i)
		s.push("room", state.Update{Ops: []state.Op{set(name, large)}})
		want = append(want, name+"="+large)
	}
	last := s.push("room", sets("seat/1", "$$hidden"))
	want = append(want, "seat/1=1")
	series, fields := s.pages(c, last.ID, "")
	if !slices.Equal(fields, want) {
		t.Errorf("%d fields, want %d", len(fields), len(want))
	}
	if n := len(series.Pages); n != 5 { // ten fields of 3 KB each fit a page
		t.Errorf("%d pages, want 5", n)
	}
	for i, m := range series.Pages {
		if size := len(m.Prepared.Payload()); size > state.PageBytes+200 {
			t.Errorf("page %d has %d bytes", i, size)
		}
	}
	if _, fields := s.pages(c, last.ID, "seat/"); !slices.Equal(fields, []string{"seat/1=1"}) {
		t.Errorf("with a prefix: %q", fields)
	}
	if n := s.store.readCount(); n != 1 {
		t.Errorf("%d reads of the state, want 1", n)
	}
}

// TestManyClientsReadOnce checks that ten thousand clients that reconnect at once cost one read of
// the store and one encoding for each prefix.
func TestManyClientsReadOnce(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, _ := s.subscribe("room")
	last := s.push("room", sets("seat/1", "x"))
	s.settle()
	before := s.maker.pages
	var clients sync.WaitGroup
	for i := range 10_000 {
		clients.Go(func() {
			prefix := []string{"", "seat/"}[i%2]
			if _, ok := s.TryPages(c, last.ID, prefix); ok {
				return
			}
			if _, err := s.Pages(t.Context(), c, last.ID, prefix); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	if n := s.store.readCount(); n != 1 {
		t.Errorf("%d reads of the store, want 1", n)
	}
	if _, err := s.load(t.Context(), c, nil); err != nil || s.store.readCount() != 1 {
		t.Errorf("a caller that comes late: %v, %d reads", err, s.store.readCount())
	}
	if n := s.maker.pages - before; n != 2 {
		t.Errorf("%d pages encoded, want 2", n)
	}
}

// TestFollowsTheLog checks that pages always have the state of the store, although it is read only
// once. The changes are random.
func TestFollowsTheLog(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, _ := s.subscribe("room")
	s.pages(c, 0, "")
	rng := rand.New(rand.NewPCG(1, 2))
	generation := int64(0)
	for range 500 {
		generation++
		var u state.Update
		for _, i := range rng.Perm(8)[:1+rng.IntN(3)] {
			op := set(fmt.Sprintf("f%d", i), fmt.Sprint(rng.IntN(100)))
			if rng.IntN(3) == 0 {
				op = state.Op{Field: op.Field, Kind: state.Delete}
			} else if rng.IntN(3) == 0 {
				op.Own, op.Grace = state.Own, time.Hour
			}
			u.Ops = append(u.Ops, op)
		}
		conn := state.Connection{Client: fmt.Sprintf("c%d", rng.IntN(3)), Generation: generation, Server: "a"}
		u.Client, u.Generation, u.Server = conn.Client, conn.Generation, conn.Server
		last := s.push("room", u).ID
		if rng.IntN(4) == 0 {
			o := s.pusher.StepStates(t.Context(), []queue.StateStep{{Channel: "room", Kind: queue.OwnerEnded, Conn: conn}})
			last = max(last, o[0].Value.ID)
		}
		if rng.IntN(4) == 0 {
			if _, err := s.store.AppendChannel(t.Context(), queue.ChannelPush{Channel: "room", Data: []byte("1")}); err != nil {
				t.Fatal(err) // without a hint: the next hint finds it missing
			}
		}
		s.settle()
		page := s.store.Memory.ReadStates(t.Context(), []queue.StateRead{{Channel: "room"}})[0].Value
		var want []string
		owners := make(map[string]bool)
		for _, f := range page.Fields {
			text := fmt.Sprintf("%s=%s", f.Name, f.Value)
			if f.Away != 0 {
				text += " away"
			}
			want = append(want, text)
			for _, owner := range f.Owners {
				owners[owner] = true
			}
		}
		if _, got := s.pages(c, last, ""); !slices.Equal(got, want) {
			t.Fatalf("after %d: got %q, want %q", page.ID, got, want)
		}
		for i := range 3 {
			client := fmt.Sprintf("c%d", i)
			if s.Owns("room", client) != owners[client] {
				t.Fatalf("%s owns fields: %v", client, owners[client])
			}
		}
	}
	if n := s.store.readCount(); n != 1 {
		t.Errorf("%d reads of the state, want 1", n)
	}
}

// TestChangesDuringTheRead checks that the pages have changes that arrive while the state is read.
func TestChangesDuringTheRead(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, _ := s.subscribe("room")
	s.push("room", sets("before"))
	s.store.afterRead = func() { s.push("room", sets("during")) }
	if _, fields := s.pages(c, 0, ""); !slices.Equal(fields, []string{"before=1", "during=1"}) {
		t.Errorf("got %q", fields)
	}
	if n := s.store.readCount(); n != 1 {
		t.Errorf("%d reads, want 1", n)
	}
}

// TestManyChangesDuringTheRead checks that the state is read again if the tail does not have all
// messages that follow it.
func TestManyChangesDuringTheRead(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, _ := s.subscribe("room")
	s.push("room", sets("before"))
	s.store.afterRead = func() {
		for i := range 300 { // more than the tail holds
			s.push("room", state.Update{Ops: []state.Op{set("during", fmt.Sprint(i))}})
		}
	}
	if _, fields := s.pages(c, 0, ""); !slices.Equal(fields, []string{"before=1", "during=299"}) {
		t.Errorf("got %q", fields)
	}
	if n := s.store.readCount(); n != 2 {
		t.Errorf("%d reads, want 2", n)
	}
}

// TestReadBeforeTheMessage checks that the state is read again if a read began before the store had
// the message at which a subscription begins.
func TestReadBeforeTheMessage(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, _ := s.subscribe("room")
	before := s.push("room", sets("before"))
	s.pages(c, 0, "")
	s.store.setDropHints(true)
	s.store.afterRead = func() { s.push("room", sets("after")) }
	if _, fields := s.pages(c, before.ID+1, ""); !slices.Equal(fields, []string{"after=1", "before=1"}) {
		t.Errorf("got %q", fields)
	}
	if n := s.store.readCount(); n != 3 {
		t.Errorf("%d reads, want 3", n)
	}
}

// TestLossReadsAgain checks that the state is read again after a loss.
func TestLossReadsAgain(t *testing.T) {
	tests := map[string]func(s *server) (reads int){
		"the tail begins anew": func(s *server) int {
			s.store.setDropHints(true)
			for range 20 { // the log keeps ten
				s.push("room", sets("lost"))
			}
			s.store.setDropHints(false)
			s.compare()
			return 2
		},
		"a loss marker": func(s *server) int {
			last := s.push("room", sets("lost"))
			m, err := s.store.ConfirmChannel(s.t.Context(), "room", last.ID+1000)
			if err != nil || m == nil {
				s.t.Fatal(m, err)
			}
			s.hub.Channel("room").Hint(m.ID, m.Prev, m.Data)
			return 2
		},
		"an entry that cannot be decoded": func(s *server) int {
			s.push("room", sets("lost"))
			a, err := s.store.AppendChannel(s.t.Context(), queue.ChannelPush{Channel: "room", Data: []byte("~{")})
			if err != nil {
				s.t.Fatal(err)
			}
			s.hub.Channel("room").Hint(a.ID, a.Prev, a.Data)
			return 2
		},
		"nothing": func(s *server) int {
			s.push("room", sets("lost"))
			return 1
		},
	}
	for name, lose := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, newStore(queue.Options{ChannelCap: 10}), "a", 0, false)
			c, _ := s.subscribe("room")
			s.push("room", sets("x"))
			s.pages(c, 0, "")
			reads := lose(s)
			s.settle()
			if n := s.store.readCount(); n != reads {
				t.Errorf("%d reads, want %d", n, reads)
			}
			after := s.push("room", sets("y"))
			if _, fields := s.pages(c, after.ID, ""); !slices.Equal(fields, []string{"lost=1", "x=1", "y=1"}) {
				t.Errorf("got %q", fields)
			}
			if n := s.store.readCount(); n != reads {
				t.Errorf("%d reads after the pages, want %d", n, reads)
			}
		})
	}
}

// TestOwnsWithoutView checks that a client may own fields if the state is not known.
func TestOwnsWithoutView(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	if !s.Owns("room", "tab") {
		t.Error("a client owns nothing, although the state is not known")
	}
	c, _ := s.subscribe("room")
	s.pages(c, 0, "")
	if s.Owns("room", "tab") {
		t.Error("a client owns fields of an empty state")
	}
}

// TestViewsAreBounded checks that the views that were not used for the longest time lose their
// fields, and that the next pages read the store again.
func TestViewsAreBounded(t *testing.T) {
	const size = 10_000
	s := newServer(t, newStore(queue.Options{}), "a", 5*size, false) // a view and its pages take twice the size
	value := `"` + strings.Repeat("v", size) + `"`
	read := func(channel string) {
		t.Helper()
		c, _ := s.subscribe(channel)
		if _, fields := s.pages(c, 0, ""); !slices.Equal(fields, []string{"x=" + value}) {
			t.Errorf("channel %s has %.40q", channel, fields)
		}
	}
	for _, channel := range []string{"a", "b", "c"} {
		s.push(channel, state.Update{Ops: []state.Op{set("x", value)}})
	}
	for range 3 {
		read("a")
	}
	if n := s.store.readCount(); n != 1 {
		t.Errorf("%d reads of one channel, want 1", n)
	}
	read("b")
	read("a") // b is now the one that was not used for the longest time
	read("c")
	if s.bytes > 5*size {
		t.Errorf("%d bytes, want at most %d", s.bytes, 5*size)
	}
	if read("a"); s.store.readCount() != 3 {
		t.Errorf("%d reads of three channels, want 3", s.store.readCount())
	}
	if read("b"); s.store.readCount() != 4 {
		t.Errorf("%d reads after b was dropped, want 4", s.store.readCount())
	}
	for range 3 {
		s.Tick()
	}
	if s.bytes > 3*size {
		t.Errorf("%d bytes after the pages were not used, want at most %d", s.bytes, 3*size)
	}
}

// TestUnusedViewIsDropped checks that a view goes some ticks after the last state subscriber left,
// and not while there is one.
func TestUnusedViewIsDropped(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, sub := s.subscribe("room")
	s.pages(c, 0, "")
	for range 2 * unusedTicks {
		s.Tick()
	}
	if len(s.views) != 1 {
		t.Fatal("the view was dropped while it has a subscriber")
	}
	s.do(func() { s.hub.Unsubscribe(sub) })
	for range unusedTicks {
		s.Tick()
	}
	if len(s.views) != 1 {
		t.Fatal("the view was dropped at once")
	}
	s.Tick()
	if len(s.views) != 0 || s.bytes != 0 || s.recent.Len() != 0 {
		t.Errorf("%d views with %d bytes are left", len(s.views), s.bytes)
	}
	c, _ = s.subscribe("room")
	after := s.push("room", sets("x"))
	if _, fields := s.pages(c, after.ID, ""); !slices.Equal(fields, []string{"x=1"}) {
		t.Errorf("later: %q", fields)
	}
}

// TestPagesOfAnEmptyChannel checks that the id of the pages is not below the position of the
// subscription, and below the id of the next message. The store is read again if the id is too old
// for that.
func TestPagesOfAnEmptyChannel(t *testing.T) {
	now := time.Now()
	s := newServer(t, newStore(queue.Options{Now: func() time.Time { return now }}), "a", 0, false)
	c, _ := s.subscribe("room")
	highest := int64(0)
	for i, reads := range []int{1, 1, 2, 2, 3} {
		pos, err := s.hub.Acquire(t.Context(), "room", nil)
		if err != nil || pos.Cursor != 0 || pos.ResumeID == 0 {
			t.Fatalf("position %+v: %v", pos, err)
		}
		series, _ := s.pages(c, pos.Cursor, "")
		if series.ID < pos.ResumeID {
			t.Errorf("after %d times 4 min: the pages have the id %d, the client has the position %d", i, series.ID, pos.ResumeID)
		}
		if n := s.store.readCount(); n != reads {
			t.Errorf("after %d times 4 min: %d reads, want %d", i, n, reads)
		}
		highest = max(highest, series.ID)
		s.hub.Release(c)
		now = now.Add(4 * time.Minute)
		s.hub.SetStoreTime(now.UnixMilli())
	}
	if last := s.push("room", sets("x")); last.ID <= highest {
		t.Errorf("the message has the id %d, the pages had %d", last.ID, highest)
	} else if _, err := s.Pages(t.Context(), c, last.ID, ""); err != nil {
		t.Error(err)
	}
}

// TestUnknownID checks that there are no pages of an id that the store does not have.
func TestUnknownID(t *testing.T) {
	s := newServer(t, newStore(queue.Options{}), "a", 0, false)
	c, _ := s.subscribe("room")
	last := s.push("room", sets("x"))
	if _, err := s.Pages(t.Context(), c, last.ID+1, ""); err == nil {
		t.Error("there are pages of an id that the store does not have")
	}
}
