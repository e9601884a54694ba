package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"switchboard/internal/testbed"
	"switchboard/internal/wire"
)

// expectedPresence is the presence that brokers and watchers should report.
type expectedPresence struct {
	members       map[string][]string // by channel, sorted
	devices       map[string]int      // number of online devices by user
	offlineMayLag bool                // users that left may still be reported online
}

// presenceCheck counts the differences from the expected presence.
type presenceCheck struct {
	missing, phantoms int
	details           []string
}

func (c *presenceCheck) mismatches() int { return c.missing + c.phantoms }

// compareNames counts the wanted names that are absent, and the names that should be absent.
func (c *presenceCheck) compareNames(source string, got, want []string) {
	got = slices.Sorted(slices.Values(got))
	for _, name := range want {
		if _, found := slices.BinarySearch(got, name); !found {
			c.missing++
			c.details = append(c.details, fmt.Sprintf("%s, %s is missing", source, name))
		}
	}
	for i, name := range got {
		if _, found := slices.BinarySearch(want, name); !found || i > 0 && got[i-1] == name {
			c.phantoms++
			c.details = append(c.details, fmt.Sprintf("%s, %s is a phantom", source, name))
		}
	}
}

// compareCount is compareNames for an answer that holds only a number.
func (c *presenceCheck) compareCount(source string, got, want int) {
	if got != want {
		c.missing += max(0, want-got)
		c.phantoms += max(0, got-want)
		c.details = append(c.details, fmt.Sprintf("%s: %d, want %d", source, got, want))
	}
}

// presencePoll is the pause between two checks of the presence. A check reads all channels through
// each watcher, which limits.message_rate counts: without a pause it would never be answered again.
const presencePoll = 200 * time.Millisecond

// awaitPresence repeats the check until it finds no difference, and after the bound records the
// differences that remain.
func (tb *bed) awaitPresence(ctx context.Context, when string, bound time.Duration, check func(context.Context) (presenceCheck, error)) error {
	var found presenceCheck
	err := within(ctx, bound, presencePoll, func() (err error) {
		if found, err = check(ctx); err == nil && found.mismatches() > 0 {
			err = errNotYet
		}
		return err
	})
	if !errors.Is(err, errNotYet) {
		if err != nil {
			err = fmt.Errorf("presence %s: %w", when, err)
		}
		return err
	}
	tb.logf("%s: %d members are missing, %d should be gone", when, found.missing, found.phantoms)
	tb.journal.update(func() {
		tb.journal.missing += found.missing
		tb.journal.phantoms += found.phantoms
		for _, detail := range found.details {
			tb.journal.evidence.add("presence", "%s: %s", when, detail)
		}
	})
	return nil
}

// checkPresence checks what each watcher received, and what its broker answers over the socket and
// over HTTP.
func (tb *bed) checkPresence(ctx context.Context, watchers []*watcher, want expectedPresence) (c presenceCheck, err error) {
	for _, w := range watchers {
		for _, channel := range w.channels {
			if user, ok := strings.CutPrefix(channel, userPrefix); ok {
				c.checkUser(tb.presence, w, user, want)
				continue
			}
			if err := c.checkChannel(ctx, tb.presence, w, channel, want.members[channel]); err != nil {
				return c, err
			}
		}
		if err := c.checkUserAnswers(ctx, w.broker, want); err != nil {
			return c, err
		}
	}
	return c, nil
}

// checkUser checks what a watcher received about a user.
func (c *presenceCheck) checkUser(journal *presenceJournal, w *watcher, user string, expected expectedPresence) {
	members, known := journal.members(viewKey{w.name, userPrefix + user})
	var want []string
	if expected.devices[user] > 0 {
		want = []string{user}
	} else if expected.offlineMayLag {
		return
	}
	if !known {
		members = nil
	}
	c.compareNames(fmt.Sprintf("by the events of %s about users", w.name), members, want)
}

// checkChannel checks what a watcher received about a channel, and what its broker answers.
func (c *presenceCheck) checkChannel(ctx context.Context, journal *presenceJournal, w *watcher, channel string, want []string) error {
	members, _ := journal.members(viewKey{w.name, channel})
	c.compareNames(fmt.Sprintf("by the events of %s about %s", w.name, channel), members, w.withoutSelf(slices.Clone(want)))
	overSocket, err := w.readPresence(ctx, channel)
	if err != nil {
		return err
	}
	c.compareAnswer(fmt.Sprintf("by the answer of %s to presence of %s", w.broker.Name, channel), overSocket, want)
	overHTTP, err := readPresence(ctx, w.broker, channel)
	if err != nil {
		return err
	}
	c.compareAnswer(fmt.Sprintf("by the answer of %s to GET presence of %s", w.broker.Name, channel), overHTTP, want)
	return nil
}

func (c *presenceCheck) compareAnswer(source string, got presenceAnswer, want []string) {
	c.compareNames(source, got.names, want)
	c.compareCount(source+", count", got.count, len(want))
	users := map[string]bool{}
	for _, name := range want {
		user, _, _ := strings.Cut(name, "/")
		users[user] = true
	}
	c.compareCount(source+", users", got.users, len(users))
}

// readPresence reads the members of a channel over HTTP.
func readPresence(ctx context.Context, b *testbed.Broker, channel string) (c presenceAnswer, err error) {
	for cursor := ""; ; {
		var page struct {
			Count   int
			Users   *int
			Clients []wire.Member
			Next    string
		}
		path := fmt.Sprintf("/v1/channels/%s/presence?limit=%d&cursor=%s", channel, pageLimit, url.QueryEscape(cursor))
		if err := b.Call(ctx, http.MethodGet, path, nil, &page); err != nil {
			return c, err
		}
		c.names, c.count, cursor = append(c.names, memberNames(&page.Clients)...), page.Count, page.Next
		if page.Users != nil {
			c.users = *page.Users
		}
		if cursor == "" {
			return c, nil
		}
	}
}

// checkUserAnswers checks a broker's answers about users: all users' online flags, and the devices
// of some users.
func (c *presenceCheck) checkUserAnswers(ctx context.Context, b *testbed.Broker, expected expectedPresence) error {
	users := slices.Sorted(maps.Keys(expected.devices))
	var answer struct {
		Users []struct {
			User   string
			Online bool
		}
	}
	if err := b.Call(ctx, http.MethodPost, "/v1/users/query", map[string]any{"users": users}, &answer); err != nil {
		return err
	}
	var got, want []string
	for _, u := range answer.Users {
		if u.Online {
			got = append(got, u.User)
		}
	}
	for _, user := range users {
		if expected.devices[user] > 0 {
			want = append(want, user)
		}
	}
	c.compareNames(fmt.Sprintf("by the answer of %s about users", b.Name), got, want)
	for i := 0; i < len(users); i += 1 + len(users)/10 {
		n, err := onlineDevices(ctx, b, users[i])
		if err != nil {
			return err
		}
		c.compareCount(fmt.Sprintf("by the answer of %s about the devices of %s", b.Name, users[i]), n, expected.devices[users[i]])
	}
	return nil
}
