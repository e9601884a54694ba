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

	"switchboard/internal/wire"
)

// truth is who is there, in fact.
type truth struct {
	in      map[string][]string // by channel: labels, sorted
	devices map[string]int      // online, by user
	grace   bool                // users who left may not be called offline yet
}

// census is how far brokers and watchers are from the truth.
type census struct {
	missing, phantoms int
	what              []string
}

func (c *census) wrong() int { return c.missing + c.phantoms }

// compare counts who is not in what somebody says, and who should not be.
func (c *census) compare(says string, got, want []string) {
	got = slices.Sorted(slices.Values(got))
	for _, name := range want {
		if _, found := slices.BinarySearch(got, name); !found {
			c.missing++
			c.what = append(c.what, fmt.Sprintf("%s, %s is not there", says, name))
		}
	}
	for i, name := range got {
		if _, found := slices.BinarySearch(want, name); !found || i > 0 && got[i-1] == name {
			c.phantoms++
			c.what = append(c.what, fmt.Sprintf("%s, %s is there", says, name))
		}
	}
}

// number is compare where only numbers are said.
func (c *census) number(says string, got, want int) {
	if got != want {
		c.missing += max(0, want-got)
		c.phantoms += max(0, got-want)
		c.what = append(c.what, fmt.Sprintf("%s, there are %d, not %d", says, got, want))
	}
}

// attend counts until all that brokers say and watchers were told is true, and after the bound enters what is not.
func (s *stage) attend(ctx context.Context, when string, bound time.Duration, count func(context.Context) (census, error)) error {
	began := time.Now()
	var found census
	var err error
	for again := true; again; again = pause(ctx, 200*time.Millisecond) {
		if found, err = count(ctx); err == nil && found.wrong() == 0 {
			return nil
		}
		if time.Since(began) > bound {
			break
		}
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return fmt.Errorf("presence %s: %w", when, err)
	}
	s.say("%s %d are missing, %d should not be there", when, found.missing, found.phantoms)
	s.book.mark(func() {
		s.book.missing += found.missing
		s.book.phantoms += found.phantoms
		for _, what := range found.what {
			s.book.evidence.add("presence", "%s: %s", when, what)
		}
	})
	return nil
}

// count asks each watcher what it was told, and its broker, over its socket and over HTTP, who is there.
func (s *stage) count(ctx context.Context, watchers []*watcher, t truth) (c census, err error) {
	for _, w := range watchers {
		for _, channel := range w.channels {
			if user, ok := strings.CutPrefix(channel, userPrefix); ok {
				c.follows(s.roster, w, user, t)
				continue
			}
			if err := c.asks(ctx, s.roster, w, channel, t.in[channel]); err != nil {
				return c, err
			}
		}
		if err := c.asksUsers(ctx, w.at, t); err != nil {
			return c, err
		}
	}
	return c, nil
}

// follows compares what a watcher was told of a user.
func (c *census) follows(book *attendance, w *watcher, user string, t truth) {
	believed, known := book.believed(roll{w.name, userPrefix + user})
	var want []string
	if t.devices[user] > 0 {
		want = []string{user}
	} else if t.grace {
		return
	}
	if !known {
		believed = nil
	}
	c.compare(fmt.Sprintf("as %s was told of users", w.name), believed, want)
}

// asks compares what a watcher was told of a channel, and what its broker answers.
func (c *census) asks(ctx context.Context, book *attendance, w *watcher, channel string, want []string) error {
	believed, _ := book.believed(roll{w.name, channel})
	c.compare(fmt.Sprintf("as %s was told of %s", w.name, channel), believed, w.others(slices.Clone(want)))
	overSocket, err := w.ask(ctx, channel)
	if err != nil {
		return err
	}
	c.crowd(fmt.Sprintf("as %s answers to presence of %s", w.at.name, channel), overSocket, want)
	overHTTP, err := w.at.presence(ctx, channel)
	if err != nil {
		return err
	}
	c.crowd(fmt.Sprintf("as %s answers to GET presence of %s", w.at.name, channel), overHTTP, want)
	return nil
}

func (c *census) crowd(says string, got crowd, want []string) {
	c.compare(says, got.names, want)
	c.number(says+" by its count", got.count, len(want))
	users := map[string]bool{}
	for _, name := range want {
		user, _, _ := strings.Cut(name, "/")
		users[user] = true
	}
	c.number(says+" by its count of users", got.users, len(users))
}

// presence reads who is in a channel, over HTTP.
func (b *instance) presence(ctx context.Context, channel string) (c crowd, err error) {
	for cursor := ""; ; {
		var page struct {
			Count   int
			Users   *int
			Clients []wire.Member
			Next    string
		}
		path := fmt.Sprintf("/v1/channels/%s/presence?limit=%d&cursor=%s", channel, mostMembers, url.QueryEscape(cursor))
		if err := ask(ctx, b, http.MethodGet, path, nil, &page); err != nil {
			return c, err
		}
		c.names, c.count, cursor = append(c.names, labels(&page.Clients)...), page.Count, page.Next
		if page.Users != nil {
			c.users = *page.Users
		}
		if cursor == "" {
			return c, nil
		}
	}
}

// asksUsers compares what a broker answers of users: who is online, and of some, on how many devices.
func (c *census) asksUsers(ctx context.Context, b *instance, t truth) error {
	users := slices.Sorted(maps.Keys(t.devices))
	var answer struct {
		Users []struct {
			User   string
			Online bool
		}
	}
	if err := ask(ctx, b, http.MethodPost, "/v1/users/query", map[string]any{"users": users}, &answer); err != nil {
		return err
	}
	var got, want []string
	for _, u := range answer.Users {
		if u.Online {
			got = append(got, u.User)
		}
	}
	for _, user := range users {
		if t.devices[user] > 0 {
			want = append(want, user)
		}
	}
	c.compare(fmt.Sprintf("as %s answers of users", b.name), got, want)
	for i := 0; i < len(users); i += 1 + len(users)/10 {
		n, err := onlineDevices(ctx, b, users[i])
		if err != nil {
			return err
		}
		c.number(fmt.Sprintf("as %s answers of the devices of %s", b.name, users[i]), n, t.devices[users[i]])
	}
	return nil
}
