package presence

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"switchboard/registry"
)

// page reads a page of the watcher's view.
func (o *testWatcher) page(cursor string, limit int) (page Page, err error) {
	o.t.Helper()
	if err := o.sub.DropExpired(o.t.Context()); err != nil {
		o.t.Fatal(err)
	}
	done := make(chan struct{})
	o.sub.loop.Post(func() { page, err = o.sub.Page(cursor, limit); close(done) })
	<-done
	return page, err
}

// TestPageAfterExpiredLease checks that a page omits the members of a server whose lease has ended,
// even before the server is treated as dead. When such a client connects elsewhere, the watcher
// receives a join.
func TestPageAfterExpiredLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b", "c")
		w.nodes["b"].join("phone", "bob", 1)
		w.settle()
		o := w.nodes["a"].watch("x")
		if page, err := o.page("", 10); err != nil || page.Count != 1 || page.Members[0].Since.IsZero() {
			t.Fatalf("%+v, %v", page, err)
		}
		delete(w.live, "b")
		if page, err := o.page("", 10); err != nil || page.Count != 0 || len(page.Members) != 0 {
			t.Errorf("after the lease ended: %+v, %v", page, err)
		}
		o.expect(nil)
		w.nodes["c"].join("phone", "bob", 2)
		w.settle()
		o.expect([]string{"phone"})
		w.setLive()
		w.settle()
		o.expect([]string{"phone"})
		w.live["b"] = true
		w.setLive()
		w.settle()
		o.expect([]string{"phone"})
	})
}

func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 0, 0, "a", "b")
		for i := range 7 {
			w.nodes[[]string{"a", "b"}[i%2]].join(fmt.Sprint("client-", i), fmt.Sprint("user-", i%3), 1)
		}
		w.settle()
		o := w.nodes["a"].watch("x")
		var found []string
		for cursor, users := "", 3; ; users = -1 {
			page, err := o.page(cursor, 2)
			if err != nil || page.Count != 7 || page.Users != users || len(page.Members) > 2 {
				t.Fatalf("%+v, %v", page, err)
			}
			for _, m := range page.Members {
				found = append(found, m.Client)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
		}
		if fmt.Sprint(found) != "[client-0 client-1 client-2 client-3 client-4 client-5 client-6]" {
			t.Errorf("found %v", found)
		}
		if _, err := o.page("0@b", 2); !errors.Is(err, registry.ErrBadCursor) {
			t.Errorf("a cursor of the store: %v", err)
		}
	})
}

// TestPageBeforeItsEvent checks pages with changes whose events are still to be sent. In a large
// channel, the next coalesced event is sent to all watchers, so it repeats the page for one that
// has read it. In any channel, events may wait on the loop of a watcher that reads a page.
func TestPageBeforeItsEvent(t *testing.T) {
	for name, tc := range map[string]struct {
		large  int
		change func(w *world, o *testWatcher)
	}{
		"coalesced event": {1, func(w *world, o *testWatcher) {
			w.nodes["a"].join("phone", "bob", 3)
			w.nodes["b"].leave("pad", 2)
			w.waitASecond() // without a tick, which would send the changes
			o.readPage()
		}},
		"event on the loop": {1000, func(w *world, o *testWatcher) {
			v, server := o.view, w.nodes["b"].id
			update := func(prev, version int64, c registry.PresenceChange) {
				v.apply(rosterUpdate{server: server, prev: prev, version: version, inline: true, change: c})
			}
			done := make(chan struct{})
			o.sub.loop.Post(func() { // what is posted meanwhile runs later
				defer close(done)
				have := v.rosters[server].version
				update(have, have+1, registry.PresenceChange{Join: []registry.Member{{Client: "phone", User: "bob", Generation: 3}}})
				update(have+1, have+2, registry.PresenceChange{Leave: []registry.Member{{Client: "pad", Generation: 2}}})
				o.readPageOnLoop()
			})
			<-done
			synctest.Wait()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 0, tc.large, "a", "b")
				w.nodes["a"].join("tv", "bob", 1)
				w.nodes["b"].join("pad", "bob", 2)
				w.settle()
				paging, other := w.nodes["a"].watch("x"), w.nodes["a"].watch("y")
				tc.change(w, paging)
				paging.expect([]string{"phone", "tv"})
				w.settle()
				for _, o := range []*testWatcher{paging, other} {
					o.expect([]string{"phone", "tv"})
				}
				if paging.repeats != 2 || other.repeats != 0 {
					t.Errorf("%d events repeated the page, and %d another watcher's knowledge, want 2 and 0", paging.repeats, other.repeats)
				}
			})
		})
	}
}
