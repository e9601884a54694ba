package presence

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"switchboard/internal/wire"
)

// TestHere checks that a value reaches the watchers on all servers, the pages of all servers, and
// not the client itself.
func TestHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b", "c")
		a, b, c := w.nodes["a"], w.nodes["b"], w.nodes["c"]
		a.join("phone", "bob", 1)
		b.join("pad", "eve", 1)
		c.join("tv", "", 1)
		w.settle()
		watchers := []*testWatcher{a.watch("phone"), a.watch("tablet"), b.watch("pad")}
		b.mustShow("pad", 1, "here I am")
		c.mustShow("tv", 1, "no watchers here")
		w.waitASecond()
		want := map[string]string{"pad": "here I am", "tv": "no watchers here"}
		for _, o := range watchers {
			o.expectValues("after they were set", want)
		}
		for _, n := range w.nodes {
			if got := n.pageValues(); !maps.Equal(got, want) {
				t.Errorf("a page of %s has the values %v, want %v", n.id, got, want)
			}
		}
		late := b.watch("x")
		late.loadPage()
		late.expectValues("on a page", want)
		b.mustShow("pad", 1, "")
		w.waitASecond()
		delete(want, "pad")
		for _, o := range append(watchers, late) {
			o.expectValues("after an end", want)
		}
		b.mustShow("pad", 1, "again")
		w.runFor(60)
		want["pad"] = "again"
		for _, o := range append(watchers, late) {
			o.expectValues("after a minute", want)
		}
		if n := watchers[1].values; n != 4 {
			t.Errorf("a watcher received %d values, want 4: nothing is delivered again when it is sent again", n)
		}
	})
}

// TestHereRate checks that at most one value per interval goes out, and that the last one does.
func TestHereRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		a.join("phone", "bob", 1)
		b.join("pad", "eve", 1)
		w.settle()
		watchers := []*testWatcher{a.watch("x"), b.watch("yy")}
		for i := range 201 { // a second
			a.mustShow("phone", 1, fmt.Sprint(i))
			time.Sleep(5 * time.Millisecond)
		}
		w.waitASecond()
		for _, o := range watchers {
			o.expectValues("after a second", map[string]string{"phone": "200"})
			if o.values < 20 || o.values > 22 {
				t.Errorf("%s received %d values within a second, want 21", o.name, o.values)
			}
		}
	})
}

// TestHereLostHints checks that lost hints only delay a value or its end.
func TestHereLostHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		b.join("pad", "eve", 1)
		w.settle()
		o := a.watchAsMember("x")
		lose := func(lose bool) { w.mu.Lock(); w.losingHints = lose; w.mu.Unlock() }
		lose(true)
		b.mustShow("pad", 1, "one")
		w.waitASecond()
		o.expectValues("while hints are lost", nil)
		lose(false)
		w.runFor(hereResend)
		o.expectValues("after the next round", map[string]string{"pad": "one"})

		lose(true)
		b.mustShow("pad", 1, "")
		w.runFor(1)
		o.expectValues("after a lost end", map[string]string{"pad": "one"})
		lose(false)
		w.runFor(hereResend)
		o.expectValues("after the next round", nil)

		b.mustShow("pad", 1, "two")
		w.waitASecond()
		o.expectValues("before the loss", map[string]string{"pad": "two"})
		lose(true)
		w.runFor(10)
		o.expectValues("after ten seconds of loss", map[string]string{"pad": "two"})
		w.runFor(10)
		o.expectValues("after twenty seconds of loss", nil)
		lose(false)
		w.runFor(hereResend)
		o.expectValues("after the loss", map[string]string{"pad": "two"})

		b.leave("pad", 1)
		w.runFor(40)
		if n, m := a.hereCount(), b.hereCount(); n+m+int(a.here.count.Load()+b.here.count.Load()) > 0 {
			t.Errorf("%d and %d values are left, in %d and %d channels", n, m, a.here.count.Load(), b.here.count.Load())
		}
	})
}

// TestHereEnds checks that a leave ends the value, and so does a newer connection of the client.
func TestHereEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b", "c")
		a, b, c := w.nodes["a"], w.nodes["b"], w.nodes["c"]
		b.join("pad", "eve", 1)
		w.settle()
		o := a.watchAsMember("x")
		b.mustShow("pad", 1, "one")
		w.waitASecond()
		b.leave("pad", 1)
		w.waitASecond()
		o.expectValues("after a leave", nil)
		b.join("pad", "eve", 1)
		w.waitASecond()
		o.expectValues("after a new join", nil)

		b.mustShow("pad", 1, "two")
		w.waitASecond()
		o.expectValues("before the move", map[string]string{"pad": "two"})
		c.join("pad", "eve", 2) // b has not noticed that its connection is lost
		w.waitASecond()
		o.expectValues("after the move", nil)
		b.mustShow("pad", 1, "late")
		w.runFor(hereResend)
		o.expectValues("after a late value of the old connection", nil)
		c.mustShow("pad", 2, "three")
		w.waitASecond()
		o.expectValues("of the new connection", map[string]string{"pad": "three"})
		b.mustShow("pad", 1, "later")
		b.leave("pad", 1)
		w.runFor(hereResend)
		o.expectValues("after the end of the old connection", map[string]string{"pad": "three"})

		delete(w.live, "c") // it dies
		w.nodes["c"].stopped = make(chan struct{})
		w.setLive()
		w.waitASecond()
		o.expectValues("after the lease of the server ended", nil)
		close(w.nodes["c"].stopped)
	})
}

// TestHereReconnect checks that a page does not show the value of a client's older connection, even
// before that connection has ended.
func TestHereReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		a := w.nodes["a"]
		a.join("pad", "eve", 1)
		w.settle()
		a.mustShow("pad", 1, "old")
		w.waitASecond()
		a.join("pad", "eve", 2)
		w.waitASecond()
		if got := a.pageValues(); len(got) > 0 {
			t.Errorf("a page has the values %v", got)
		}
		a.mustShow("pad", 2, "new")
		a.mustShow("pad", 1, "late")
		a.leave("pad", 1)
		w.waitASecond()
		if got := a.pageValues(); got["pad"] != "new" {
			t.Errorf("a page has the values %v", got)
		}
	})
}

// TestHereBacklog checks that a watcher whose socket was backed up receives the newest value of
// each client, and that a snapshot has the values.
func TestHereBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		a.join("phone", "bob", 1)
		b.join("pad", "eve", 1)
		w.settle()
		o := a.watchAsMember("x")
		o.setBacklogged(true)
		for i := range 10 {
			a.mustShow("phone", 1, fmt.Sprint(i))
			b.mustShow("pad", 1, fmt.Sprint(-i))
			w.waitASecond()
		}
		o.setBacklogged(false)
		o.expectValues("after a backlog", map[string]string{"phone": "9", "pad": "-9"})
		if o.values != 2 {
			t.Errorf("%d values were delivered, want 2", o.values)
		}
		o.setBacklogged(true)
		a.join("tv", "", 1)
		a.mustShow("phone", 1, "")
		a.mustShow("tv", 1, "on")
		w.settle()
		o.setBacklogged(false)
		o.expectValues("after a snapshot", map[string]string{"tv": "on", "pad": "-9"})
		a.mustShow("phone", 1, "back")
		w.waitASecond()
		o.expectValues("in the end", map[string]string{"tv": "on", "pad": "-9", "phone": "back"})
		if o.values != 3 {
			t.Errorf("%d values were delivered, want 3", o.values)
		}
	})
}

// TestHereLongBacklog checks that a watcher whose socket was backed up for long misses no end.
func TestHereLongBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		a := w.nodes["a"]
		a.join("phone", "bob", 1)
		o := a.watchAsMember("x")
		a.mustShow("phone", 1, "on")
		w.waitASecond()
		o.expectValues("before the backlog", map[string]string{"phone": "on"})
		o.setBacklogged(true)
		a.mustShow("phone", 1, "")
		w.runFor(40)
		if n := a.hereCount(); n > 0 {
			t.Errorf("%d values are left", n)
		}
		o.setBacklogged(false)
		o.expectValues("after the backlog", nil)
	})
}

// TestHereLarge checks that values are refused in a large channel, and that those that exist end.
func TestHereLarge(t *testing.T) {
	for _, watched := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 0, 3, "a", "b")
			a, b := w.nodes["a"], w.nodes["b"]
			a.join("phone", "bob", 1)
			w.settle()
			o := b.watchAsMember("x")
			if watched {
				a.watch("y")
			}
			a.mustShow("phone", 1, "small")
			w.waitASecond()
			o.expectValues("in a small channel", map[string]string{"phone": "small"})
			b.join("pad", "eve", 1)
			b.join("tv", "eve", 1)
			w.waitASecond()
			if !watched { // it has not noticed yet that the channel is large
				a.mustShow("phone", 1, "not shown")
				w.waitASecond()
				o.expectValues("when the channel has become large", nil)
				o.loadPage()
				o.expectValues("in a page", nil)
			}
			w.runFor(hereResend + 1)
			o.expectValues("in a large channel", nil)
			for _, n := range w.nodes {
				if got := n.pageValues(); len(got) > 0 {
					t.Errorf("a page of %s has the values %v", n.id, got)
				}
			}
			err := a.show("phone", 1, "large")
			if e, ok := err.(*wire.Error); !ok || e.Code != wire.RateLimited || !strings.Contains(e.Message, "more than 3 clients") {
				t.Errorf("a value in a large channel: %v", err)
			}
			b.leave("tv", 1)
			w.runFor(hereResend * 4)
			a.mustShow("phone", 1, "small again")
			w.waitASecond()
			o.expectValues("after a leave", map[string]string{"phone": "small again"})
		})
	}
}

// TestHereNewServer checks that a server whose first member joins receives the values at once.
func TestHereNewServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		a, b := w.nodes["a"], w.nodes["b"]
		a.join("phone", "bob", 1)
		w.settle()
		a.watch("phone")
		a.mustShow("phone", 1, "early")
		w.waitASecond()
		if got := b.pageValues(); len(got) > 0 {
			t.Errorf("a server without members has the values %v", got)
		}
		b.join("pad", "eve", 1)
		w.waitASecond()
		if got := b.pageValues(); got["phone"] != "early" {
			t.Errorf("a server with a new member has the values %v", got)
		}
	})
}

// TestHereSizes checks sizes for which the allocator has a class, and that a Presence without
// values has no structures for them.
func TestHereSizes(t *testing.T) {
	if n := unsafe.Sizeof(Subscription{}); n > 80 {
		t.Errorf("a Subscription takes %d bytes, want at most 80", n)
	}
	if n := unsafe.Sizeof(hereValue{}); n > 128 {
		t.Errorf("a hereValue takes %d bytes, want at most 128", n)
	}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a")
		w.nodes["a"].join("phone", "bob", 1)
		w.nodes["a"].watch("x")
		w.nodes["a"].leave("phone", 1)
		w.settle()
		if w.nodes["a"].here.channels != nil {
			t.Error("a channel without values has a hereChannel")
		}
	})
}
