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

func (a *app) webhooksCommand() *cobra.Command {
	c := group("webhooks", "Shows events that wait or could not be delivered, and sends these again",
		"Shows the events for your backend that wait or could not be delivered, and sends the latter again.",
		a.webhooksDeadCommand(), a.webhooksRetryCommand(), &cobra.Command{
			Use: "waiting", Short: "Shows how many events wait, and since when", Args: args(0, 0, ""), RunE: a.call(a.webhooksWaiting),
		})
	return c
}

func (a *app) webhooksWaiting(ctx context.Context, sb *backend.Client, _ []string) error {
	w, err := sb.Webhooks(ctx)
	if err != nil {
		return err
	}
	a.screen.Value(w, func() {
		a.screen.Pairs("waiting", fmt.Sprint(w.Waiting), "oldest", a.screen.When(w.Oldest, time.Now()),
			"dead letters", fmt.Sprint(w.Dead), "dropped", fmt.Sprint(w.Dropped))
		for _, e := range w.Endpoints {
			a.screen.Pairs("endpoint", e.URL, "events", strings.Join(e.Events, " "))
		}
	})
	return nil
}

func (a *app) webhooksDeadCommand() *cobra.Command {
	var limit int
	c := &cobra.Command{Use: "dead", Short: "Lists the events that could not be delivered", Args: args(0, 0, "")}
	c.Flags().IntVar(&limit, "limit", 100, "the most rows; 0 for all")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, _ []string) error {
		all := backend.DeadLetterPage{Letters: []backend.DeadLetter{}}
		err := pages(limit, func(cursor string, n int) (string, int, error) {
			p, err := sb.DeadLetters(ctx, backend.PageQuery{Cursor: cursor, Limit: n})
			all.Letters, all.Cursor = append(all.Letters, p.Letters...), p.Cursor
			return p.Cursor, len(all.Letters), err
		})
		if err != nil {
			return err
		}
		a.screen.Value(all, func() {
			rows := make([][]screen.Cell, len(all.Letters))
			for i, l := range all.Letters {
				rows[i] = []screen.Cell{{Text: a.screen.When(l.At, time.Now())}, {Text: l.Reason, Color: screen.Yellow}, {Text: string(l.Event)}}
			}
			a.screen.Table([]string{"given up", "reason", "event"}, rows)
			a.noteMore(all.Cursor, len(rows))
		})
		return nil
	})
	return c
}

func (a *app) webhooksRetryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "retry", Short: "Sends all events again that could not be delivered", Args: args(0, 0, ""),
		RunE: a.call(func(ctx context.Context, sb *backend.Client, _ []string) error {
			n, err := sb.RetryDeadLetters(ctx)
			if err != nil {
				return err
			}
			a.screen.Value(map[string]int{"retried": n}, func() { a.screen.Text("%s queued again", count(n, "event")) })
			return nil
		}),
	}
}
