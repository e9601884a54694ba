package account

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/queue"
)

// counter counts the calls of a store and of an index. Each is one script in Redis.
type counter struct {
	Store
	index.Index
	reads, writes, lists atomic.Int64
}

func (c *counter) Change(ctx context.Context, channel string, u *state.Update, durable bool) (kit.Changed, error) {
	c.writes.Add(1)
	return c.Store.Change(ctx, channel, u, durable)
}

func (c *counter) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	c.reads.Add(int64(len(reads)))
	return c.Store.ReadStates(ctx, reads)
}

func (c *counter) Put(ctx context.Context, cards ...index.Card) error {
	c.lists.Add(1)
	return c.Index.Put(ctx, cards...)
}

func (c *counter) Schedule(ctx context.Context, in time.Duration, ids ...string) error {
	c.lists.Add(1)
	return c.Index.Schedule(ctx, in, ids...)
}

func (c *counter) cost() string {
	return fmt.Sprintf("| %d | %d | %d |", c.reads.Swap(0), c.writes.Swap(0), c.lists.Swap(0))
}

// TestCosts counts the scripts of each operation. The page of the documentation has the same rows.
func TestCosts(t *testing.T) {
	c := &counter{Index: index.NewMemory()}
	a, _ := start(t, kittest.NewMemory(), func(o *Options) { o.Index = c })
	c.Store, a.store, a.documents.States = a.store, c, c
	doc, err := os.ReadFile("../../docs/accounts.md")
	if err != nil {
		t.Fatal(err)
	}
	check := func(operation string) {
		t.Helper()
		if row := fmt.Sprintf("| %s %s", operation, c.cost()); !strings.Contains(string(doc), row+"\n") {
			t.Errorf("docs/accounts.md does not have the row %s", row)
		}
	}
	s := a.register(t, "amy")
	check("register")
	ok[Session](t)(a.login(t, "amy", "secret of amy"))
	check("login by a password")
	challenge(t, a, a, "amy", "secret of amy")
	check("login by a challenge")
	s = ok[Session](t)(a.Renew(t.Context(), s.Renewal, here))
	check("renew")
	ok[Account](t)(a.Get(t.Context(), s.Account.ID))
	check("get")
	ok[Account](t)(a.RenameSelf(t.Context(), s.Account.ID, "bob", "secret of amy", here, kit.Match{}))
	check("change the name")
	ok[Account](t)(a.ChangePassword(t.Context(), s.Account.ID, "secret of amy", "another secret", here))
	check("change the password")
	s = ok[Session](t)(a.login(t, "bob", "another secret"))
	c.cost()
	if err := a.Logout(t.Context(), s.Renewal, false, here); err != nil {
		t.Fatal(err)
	}
	check("log out")
	ok[Account](t)(a.Lock(t.Context(), s.Account.ID))
	check("lock, unlock, delete, restore")
}
