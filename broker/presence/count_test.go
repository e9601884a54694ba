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

// counted counts the members that are read.
type readCounter struct {
	*registry.Memory
	read atomic.Int64
}

func (c *readCounter) RosterPage(ctx context.Context, server, channel, cursor string, limit int) ([]registry.Member, string, error) {
	members, next, err := c.Memory.RosterPage(ctx, server, channel, cursor, limit)
	c.read.Add(int64(len(members)))
	return members, next, err
}

// TestPagesReadLittle: of those who ask for the first client of a large channel again and again,
// one a second reads all of its clients, to count the users.
func TestPagesReadLittle(t *testing.T) {
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
		ask := func(channel string, count, users int) {
			t.Helper()
			page, err := p.Page(t.Context(), channel, "", 1)
			if err != nil || page.Count != count || page.Users != users || len(page.Members) != 1 {
				t.Errorf("%d of %d clients, %d users, %v; want 1 of %d, %d", len(page.Members), page.Count, page.Users, err, count, users)
			}
		}
		join(testChannel, 0, size)
		for range 100 {
			go ask(testChannel, size, size/2)
		}
		synctest.Wait()
		if n := store.read.Load(); n != size+100 {
			t.Errorf("%d members were read for 100 pages of one", n)
		}
		join(testChannel, size, size+2)
		ask(testChannel, size+2, size/2) // the users are those of a moment ago
		<-time.After(countTTL)
		ask(testChannel, size+2, size/2+1)

		join("small", 0, 2)
		ask("small", 2, 1)
		join("small", 2, 4)
		ask("small", 4, 2) // of which all are read at once

		for i := range 2 * maxCounts { // counts that nobody asks for again do not stay
			channel := fmt.Sprint("room-", i)
			join(channel, 0, 1)
			ask(channel, 1, 1)
		}
		if n := len(p.counts.counts); n > maxCounts {
			t.Errorf("%d counts are remembered", n)
		}
	})
}
