package presence

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/work"
	"switchboard/registry"
)

// readCounter counts the members that are read.
type readCounter struct {
	*registry.Memory
	read atomic.Int64
}

func (c *readCounter) RosterPage(ctx context.Context, server, channel, cursor string, limit int) ([]registry.Member, string, error) {
	members, next, err := c.Memory.RosterPage(ctx, server, channel, cursor, limit)
	c.read.Add(int64(len(members)))
	return members, next, err
}

// TestRepeatedPagesShareOneCount checks repeated reads of a page of a large channel: all members of
// the channel are read at most once per countTTL, to count the users.
func TestRepeatedPagesShareOneCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 500
		store := &readCounter{Memory: registry.NewMemory(registry.Options{Lease: time.Hour})}
		p := New(Options{Store: store, Pool: work.NewOn(1, func(worker func()) { go worker() }), ServerID: func() string { return "me" }})
		if err := store.Beat(t.Context(), registry.Server{ID: "me"}); err != nil {
			t.Fatal(err)
		}
		join := func(channel string, from, to int) {
			change := registry.RosterChange{Channel: channel}
			for i := from; i < to; i++ {
				change.Join = append(change.Join, registry.Member{Client: fmt.Sprint("c", i), User: fmt.Sprint("u", i/2)})
			}
			if err := store.BindChannel(t.Context(), "me", channel); err != nil {
				t.Fatal(err)
			}
			for _, o := range store.ChangePresence(t.Context(), "me", []registry.RosterChange{change}) {
				if o.Err != nil {
					t.Fatal(o.Err)
				}
			}
		}
		checkPage := func(channel string, count, users int) {
			t.Helper()
			page, err := p.Page(t.Context(), channel, "", 1, 0)
			if err != nil || page.Count != count || page.Users != users || len(page.Members) != 1 {
				t.Errorf("%d of %d clients, %d users, %v; want 1 of %d, %d", len(page.Members), page.Count, page.Users, err, count, users)
			}
		}
		join(testChannel, 0, size)
		for range 100 {
			go checkPage(testChannel, size, size/2)
		}
		synctest.Wait()
		if n := store.read.Load(); n != size+100 {
			t.Errorf("%d members were read for 100 pages of one", n)
		}
		join(testChannel, size, size+2)
		checkPage(testChannel, size+2, size/2) // the number of users is cached
		<-time.After(countTTL)
		checkPage(testChannel, size+2, size/2+1)

		join("small", 0, 2)
		checkPage("small", 2, 1)
		join("small", 2, 4)
		checkPage("small", 4, 2) // a small channel is counted at once

		for i := range 2 * maxCounts { // unused counts are removed
			channel := fmt.Sprint("room-", i)
			join(channel, 0, 1)
			checkPage(channel, 1, 1)
		}
		if n := len(p.counts.counts); n > maxCounts {
			t.Errorf("%d counts are cached", n)
		}
	})
}
