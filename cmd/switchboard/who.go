package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

func (a *app) whoCommand() *cobra.Command {
	var channel, client string
	var limit int
	c := &cobra.Command{
		Use: "who [USER]...", Short: "Shows who is connected",
		Long: `Shows the users that are online; the devices of USERs, also those that are offline; the clients in a channel
(--channel); or one client and its connection (--client).

An unknown user or channel is no error, but a client that the store does not know is: exit code 3.`,
		Example: `  switchboard who
  switchboard who alice
  switchboard who --channel news
  switchboard who --client alice/phone`,
		SuggestFor: []string{"users", "clients", "presence", "online"},
		Args:       cobra.ArbitraryArgs, ValidArgsFunction: a.complete(a.userNames),
	}
	c.Flags().StringVar(&channel, "channel", "", "the clients in a `channel`")
	c.Flags().StringVarP(&client, "client", "c", "", "one client, like alice/phone (`id`)")
	c.Flags().IntVar(&limit, "limit", 100, "the most rows; 0 for all")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, users []string) error {
		switch {
		case channel != "" && client != "", len(users) > 0 && channel+client != "":
			return usage("users, --channel, --client: only one of them")
		case channel != "":
			return a.whoChannel(ctx, sb, channel, limit)
		case client != "":
			return a.whoClient(ctx, sb, client)
		case len(users) > 0:
			return a.whoUsers(ctx, sb, users)
		}
		return a.whoOnline(ctx, sb, limit)
	})
	return c
}

// connection is a cell that says whether something is online.
func connection(on bool) screen.Cell {
	if on {
		return screen.Cell{Text: online(on), Color: screen.Green}
	}
	return screen.Cell{Text: online(on), Color: screen.Dim}
}

func (a *app) whoOnline(ctx context.Context, sb *backend.Client, limit int) error {
	all := backend.UserPage{Users: []backend.OnlineUser{}}
	err := pages(limit, func(cursor string, n int) (string, int, error) {
		p, err := sb.Users(ctx, backend.PageQuery{Cursor: cursor, Limit: n})
		all.Count, all.Connections, all.Cursor = p.Count, p.Connections, p.Cursor
		all.Partial = all.Partial || p.Partial
		all.Users = append(all.Users, p.Users...)
		return p.Cursor, len(all.Users), err
	})
	return a.show(all, err, func() {
		table(a, []string{"user", "devices", "clients"}, all.Users, func(u backend.OnlineUser) []screen.Cell {
			return []screen.Cell{{Text: u.User, Color: screen.Bold}, screen.Number(len(u.Clients)), {Text: strings.Join(u.Clients, " ")}}
		})
		if all.Cursor != "" {
			a.note("the first %d of about %d users; --limit 0 shows all", len(all.Users), all.Count)
		}
		if all.Partial {
			a.note("an instance did not answer: its users are missing")
		}
	})
}

func (a *app) whoUsers(ctx context.Context, sb *backend.Client, names []string) error {
	users := make([]backend.User, len(names))
	for i, name := range names {
		var err error
		if users[i], err = sb.User(ctx, name); err != nil {
			return err
		}
	}
	a.screen.Value(map[string]any{"users": users}, func() {
		var rows [][]screen.Cell
		for _, u := range users {
			for _, d := range u.Clients {
				rows = append(rows, []screen.Cell{
					{Text: d.Client, Color: screen.Bold}, connection(d.Online), {Text: d.Server},
					{Text: a.screen.When(d.Since, time.Now())}, screen.Number(d.Queued),
				})
			}
			if len(u.Clients) == 0 {
				a.note("%s has no devices that the store knows", u.User)
				if strings.Contains(u.User, "/") {
					a.note("One client: switchboard who --client %s", u.User)
				}
			}
		}
		if len(rows) > 0 {
			a.screen.Table([]string{"client", "state", "server", "since", "queued"}, rows)
		}
	})
	return nil
}

func (a *app) whoChannel(ctx context.Context, sb *backend.Client, channel string, limit int) error {
	all := backend.PresencePage{Channel: channel, Clients: []backend.Member{}}
	err := pages(limit, func(cursor string, n int) (string, int, error) {
		p, err := sb.Presence(ctx, channel, backend.PageQuery{Cursor: cursor, Limit: n})
		if cursor == "" {
			all.Users = p.Users
		}
		all.Count, all.Cursor, all.Next = p.Count, p.Cursor, p.Next
		all.Clients = append(all.Clients, p.Clients...)
		return p.Cursor, len(all.Clients), err
	})
	return a.show(all, err, func() {
		table(a, []string{"client", "user", "since", "info", "here"}, all.Clients, func(m backend.Member) []screen.Cell {
			return []screen.Cell{
				{Text: m.Client, Color: screen.Bold}, {Text: m.User}, {Text: a.screen.When(m.Since, time.Now())},
				{Text: string(m.Info), Color: screen.Dim}, {Text: string(m.Here), Color: screen.Dim},
			}
		})
		if all.Cursor != "" {
			a.note("the first %d of %d clients; --limit 0 shows all", len(all.Clients), all.Count)
		}
	})
}

func (a *app) whoClient(ctx context.Context, sb *backend.Client, id string) error {
	c, err := sb.Client(ctx, id)
	return a.show(c, err, func() {
		a.screen.Pairs("client", c.Client, "user", c.User, "state", online(c.Online), "server", c.Server,
			"since", a.screen.When(c.Since, time.Now()), "address", c.Address, "token ends", a.screen.When(c.Expires*1000, time.Now()),
			"queued", fmt.Sprint(c.Queued), "channels", strings.Join(c.Channels, " "))
	})
}

// mostPerPage is the most that the API returns in one page.
const mostPerPage = 1000

// pages calls read for page after page until it has read limit rows, 0 for all. read returns the
// cursor of the next page, and the number of rows up to now.
func pages(limit int, read func(cursor string, n int) (next string, rows int, err error)) error {
	cursor, rows := "", 0
	for {
		n := mostPerPage
		if limit > 0 {
			n = min(n, limit-rows)
		}
		next, total, err := read(cursor, n)
		if err != nil || next == "" || limit > 0 && total >= limit {
			return err
		}
		cursor, rows = next, total
	}
}
