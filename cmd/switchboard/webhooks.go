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
	return group("webhooks", "Shows events that wait or could not be delivered, and sends these again",
		"Shows the events for your backend that wait or could not be delivered, and sends the latter again.",
		a.webhooksDeadCommand(), a.webhooksDropCommand(), a.webhooksRetryCommand(), &cobra.Command{
			Use: "waiting", Short: "Shows how many events wait, since when, and the last attempt", Args: args(0, 0, ""), RunE: a.call(a.webhooksWaiting),
		})
}

func (a *app) webhooksWaiting(ctx context.Context, sb *backend.Client, _ []string) error {
	w, err := sb.Webhooks(ctx)
	return a.show(w, err, func() {
		a.screen.Pairs("waiting", fmt.Sprint(w.Waiting), "oldest", a.screen.When(w.Oldest, time.Now()),
			"dead letters", fmt.Sprint(w.Dead), "dropped", fmt.Sprint(w.Dropped),
			"failed attempts", fmt.Sprint(w.Attempts), "next attempt", a.screen.When(w.RetryAt, time.Now()))
		if last := w.Last; last != nil {
			answer := last.Error
			if last.Status > 0 {
				answer = fmt.Sprint(last.Status)
			}
			a.screen.Pairs("last attempt", a.screen.When(last.At, time.Now()), "last answer", answer)
		}
		for _, e := range w.Endpoints {
			a.screen.Pairs("endpoint", e.URL, "events", strings.Join(e.Events, " "))
		}
	})
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
		return a.show(all, err, func() {
			table(a, []string{"given up", "reason", "event"}, all.Letters, func(l backend.DeadLetter) []screen.Cell {
				return []screen.Cell{{Text: a.screen.When(l.At, time.Now())}, {Text: l.Reason, Color: screen.Yellow}, {Text: string(l.Event)}}
			})
			a.noteMore(all.Cursor, len(all.Letters))
		})
	})
	return c
}

func (a *app) webhooksRetryCommand() *cobra.Command {
	return &cobra.Command{
		Use: "retry [EVENT]", Short: "Sends all events again that could not be delivered, or one",
		Long: "Sends all events again that could not be delivered, or the one with the id EVENT, which `webhooks dead` shows.",
		Args: args(0, 1, "the id of an event"),
		RunE: a.call(func(ctx context.Context, sb *backend.Client, names []string) (err error) {
			n := 1
			if len(names) > 0 {
				err = sb.RetryDeadLetter(ctx, names[0])
			} else {
				n, err = sb.RetryDeadLetters(ctx)
			}
			return a.show(map[string]int{"retried": n}, err, func() { a.screen.Text("%s queued again", count(n, "event")) })
		}),
	}
}

func (a *app) webhooksDropCommand() *cobra.Command {
	return &cobra.Command{
		Use: "drop EVENT", Short: "Drops one event that could not be delivered",
		Long: "Drops the event with the id EVENT, which `webhooks dead` shows. It is never sent.",
		Args: args(1, 1, "the id of an event"),
		RunE: a.call(func(ctx context.Context, sb *backend.Client, names []string) error {
			return a.show(map[string]int{"dropped": 1}, sb.DropDeadLetter(ctx, names[0]), func() { a.screen.Text("1 event dropped") })
		}),
	}
}
