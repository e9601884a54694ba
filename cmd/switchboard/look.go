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

func (a *app) channelsCommand() *cobra.Command {
	var prefix string
	var limit int
	c := &cobra.Command{
		Use: "channels [CHANNEL]", Short: "Lists the channels with subscribers, or shows one channel",
		Args: args(0, 1, "a channel"), ValidArgsFunction: a.completeFirst(a.channelNames),
	}
	c.Flags().StringVar(&prefix, "prefix", "", "only channels whose names begin with `text`")
	c.Flags().IntVar(&limit, "limit", 100, "the most rows; 0 for all")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		if len(args) > 0 {
			return a.showChannel(ctx, sb, args[0])
		}
		return a.listChannels(ctx, sb, prefix, limit)
	})
	return c
}

func (a *app) showChannel(ctx context.Context, sb *backend.Client, name string) error {
	c, err := sb.Channel(ctx, name)
	return a.show(c, err, func() {
		last := ""
		if c.ID > 0 {
			last = fmt.Sprintf("%d (%s)", c.ID, a.screen.When(timeOf(c.ID).UnixMilli(), time.Now()))
		}
		a.screen.Pairs("channel", c.Channel, "subscribers", fmt.Sprint(c.Subscribers), "servers", fmt.Sprint(c.Servers),
			"messages", fmt.Sprint(c.Messages), "last id", last)
		a.notePartial(c.Partial)
	})
}

func (a *app) listChannels(ctx context.Context, sb *backend.Client, prefix string, limit int) error {
	all := backend.ChannelPage{Channels: []backend.ChannelCount{}}
	err := pages(limit, func(cursor string, n int) (string, int, error) {
		p, err := sb.Channels(ctx, backend.PageQuery{Prefix: prefix, Cursor: cursor, Limit: n})
		all.Channels, all.Cursor = append(all.Channels, p.Channels...), p.Cursor
		all.Partial = all.Partial || p.Partial
		return p.Cursor, len(all.Channels), err
	})
	return a.show(all, err, func() {
		table(a, []string{"channel", "subscribers"}, all.Channels, func(c backend.ChannelCount) []screen.Cell {
			return []screen.Cell{{Text: c.Channel, Color: screen.Bold}, screen.Number(c.Subscribers)}
		})
		a.noteMore(all.Cursor, len(all.Channels))
		a.notePartial(all.Partial)
	})
}

// noteMore says that a list has more rows, if there is a cursor.
func (a *app) noteMore(cursor string, rows int) {
	if cursor != "" {
		a.note("the first %d rows; --limit 0 shows all", rows)
	}
}

func (a *app) notePartial(partial bool) {
	if partial {
		a.note("an instance did not answer: the numbers are lower bounds")
	}
}

func (a *app) serversCommand() *cobra.Command {
	var figures bool
	c := &cobra.Command{
		Use: "servers", Short: "Lists the live instances, with --stats their figures",
		Args: args(0, 0, ""),
	}
	c.Flags().BoolVar(&figures, "stats", false, "show counters since the start, latencies of the last 10 s, and memory")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, _ []string) error {
		if figures {
			return a.showStats(ctx, sb)
		}
		return a.listServers(ctx, sb)
	})
	return c
}

func (a *app) listServers(ctx context.Context, sb *backend.Client) error {
	servers, err := sb.Servers(ctx)
	return a.show(map[string]any{"servers": servers}, err, func() {
		now := time.Now()
		header := []string{"server", "host", "version", "started", "heartbeat", "connections", "users", "channels"}
		table(a, header, servers, func(s backend.Server) []screen.Cell {
			return []screen.Cell{
				{Text: s.Server, Color: screen.Bold}, {Text: s.Host}, {Text: s.Version},
				{Text: a.screen.When(s.StartedAt, now)}, {Text: a.screen.When(s.LastActive, now)},
				screen.Number(s.Connections), screen.Number(s.Users), screen.Number(s.Channels),
			}
		})
	})
}

func (a *app) showStats(ctx context.Context, sb *backend.Client) error {
	stats, err := sb.Stats(ctx)
	return a.show(stats, err, func() {
		header := []string{"server", "connections", "subscriptions", "pushes", "errors", "delivered", "append p50/p99", "drain p50/p99", "rss"}
		table(a, header, stats.Servers, func(s backend.ServerStats) []screen.Cell {
			return []screen.Cell{
				{Text: s.Server, Color: screen.Bold}, screen.Number(s.Connections), screen.Number(s.Subscriptions),
				screen.Number(s.Pushes), screen.Number(s.PushErrors), screen.Number(s.Delivered),
				{Text: latency(s.Append), Right: true}, {Text: latency(s.Drain), Right: true}, {Text: megabytes(s.RSS), Right: true},
			}
		})
		if stats.Partial {
			a.note("an instance did not answer and is missing")
		}
	})
}

// latency returns the median and the 99th percentile.
func latency(d backend.Duration) string {
	if d.P50 == 0 && d.P99 == 0 {
		return "-"
	}
	return milliseconds(d.P50) + "/" + milliseconds(d.P99)
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.3gms", seconds*1000) }

func megabytes(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%dM", n>>20)
}

func (a *app) selfCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "self", Short: "Shows which instance answers, and what the API key may do", Args: args(0, 0, ""),
	}
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, _ []string) error {
		s, err := sb.Self(ctx)
		return a.show(s, err, func() {
			store := "memory"
			if s.Redis {
				store = "Redis"
			}
			a.screen.Pairs("url", sb.URL(), "server", s.Server, "version", s.Version, "started", a.screen.When(s.StartedAt, time.Now()),
				"store", store, "key", s.Key.Name, "scopes", strings.Join(s.Key.Scopes, " "), "API", needs(!s.Open, "an API key"),
				"clients", needs(s.Tokens, "a token"), "kit", strings.Join(s.Kit, " "), "webhooks", yesNo[s.Webhooks])
		})
	})
	return c
}

var yesNo = map[bool]string{true: "yes", false: "no"}

func needs(yes bool, what string) string {
	if yes {
		return "needs " + what
	}
	return "open"
}
