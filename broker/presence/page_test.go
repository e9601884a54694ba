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
