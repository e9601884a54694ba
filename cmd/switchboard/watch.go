package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
	"switchboard/internal/wire"
)

func (a *app) stateWatchCommand() *cobra.Command {
	var prefix string
	c := &cobra.Command{
		Use: "watch CHANNEL", Short: "Prints the fields of a channel, and then their changes",
		Long: `Prints the fields of a channel, and then each change, until it is interrupted. A line has the id, the field, and set,
del, expired, left, away or back, with the new value. If changes are missing, it says so and prints all fields again.

With --json, the first line is {"type":"state","channel","id","fields"}, and a change is {"type":"message","channel",
"id",…} as in docs/protocol.md.`,
		Args: args(1, 1, "a channel"), ValidArgsFunction: a.completeFirst(a.channelNames),
	}
	c.Flags().StringVar(&prefix, "prefix", "", "only fields whose names begin with `text`")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		w := &watch{tail: &tail{app: a, sb: sb}, channel: args[0], prefix: prefix, pause: firstPause}
		for ctx.Err() == nil {
			if err := w.round(ctx); err != nil {
				if err := w.tail.pause(ctx, err, &w.pause); err != nil && ctx.Err() == nil {
					return err
				}
			}
		}
		return nil
	})
	return c
}

// watch follows the fields of a channel.
type watch struct {
	*tail
	channel, prefix string
	known           bool  // the fields up to the id after are printed
	after           int64 // position
	pause           time.Duration
}

// round prints all fields, or the changes of a page of messages.
func (w *watch) round(ctx context.Context) error {
	if !w.known {
		all, err := readState(ctx, w.sb, w.channel, w.prefix, 0)
		if err != nil {
			return err
		}
		w.printAll(all)
		w.known, w.after, w.warned, w.pause = true, all.ID, false, firstPause
		return w.screen.Err()
	}
	asked := time.Now()
	p, err := w.sb.History(ctx, w.channel, backend.HistoryQuery{After: w.after, Limit: tailPage, Wait: tailWait})
	if err != nil {
		return err
	}
	w.warned, w.pause = false, firstPause
	if !p.Recovered {
		w.known = false
		w.printGap(stream{kind: "channel", name: w.channel}, w.after, p.ID)
		return w.screen.Err()
	}
	for _, m := range p.Messages {
		w.printChanges(m)
	}
	w.after = page{p.Messages, p.ID, p.Recovered, p.More}.next(w.after)
	if len(p.Messages) == 0 && time.Since(asked) < pollEvery {
		wait(ctx, pollEvery)
	}
	return w.screen.Err()
}

func (w *watch) printAll(all backend.StatePage) {
	line := struct {
		Type string `json:"type"`
		backend.StatePage
	}{"state", all}
	w.screen.Value(line, func() {
		for _, name := range slices.Sorted(maps.Keys(all.Fields)) {
			w.printField(all.Fields[name].ID, name, "set", all.Fields[name].Value)
		}
	})
}

// printChanges prints what a message changed.
func (w *watch) printChanges(m backend.Message) {
	if m.StateEvent == nil {
		return
	}
	e := w.selected(*m.StateEvent)
	if !e.Cleared && len(e.Set)+len(e.Del)+len(e.Gone)+len(e.Away)+len(e.Back)+len(e.Until) == 0 {
		return
	}
	m.StateEvent = &e
	w.screen.Value(tailMessage{Type: "message", Channel: w.channel, Message: m}, func() {
		if e.Cleared {
			w.printField(m.ID, "*", "cleared", nil)
		}
		for _, name := range slices.Sorted(maps.Keys(e.Gone)) {
			w.printField(m.ID, name, e.Gone[name], nil)
		}
		for _, name := range e.Del {
			w.printField(m.ID, name, "del", nil)
		}
		for _, name := range slices.Sorted(maps.Keys(e.Set)) {
			w.printField(m.ID, name, "set", e.Set[name])
		}
		for _, name := range slices.Sorted(maps.Keys(e.Away)) {
			w.printField(m.ID, name, "away", nil)
		}
		for _, name := range e.Back {
			w.printField(m.ID, name, "back", nil)
		}
	})
}

// selected returns the changes of the fields that begin with the prefix.
func (w *watch) selected(e wire.StateEvent) wire.StateEvent {
	other := func(name string) bool { return !strings.HasPrefix(name, w.prefix) }
	e.Del, e.Back = slices.DeleteFunc(e.Del, other), slices.DeleteFunc(e.Back, other)
	maps.DeleteFunc(e.Gone, func(name, _ string) bool { return other(name) })
	maps.DeleteFunc(e.Set, func(name string, _ json.RawMessage) bool { return other(name) })
	maps.DeleteFunc(e.Until, func(name string, _ int64) bool { return other(name) })
	maps.DeleteFunc(e.Away, func(name string, _ int64) bool { return other(name) })
	return e
}

func (w *watch) printField(id int64, name, what string, value json.RawMessage) {
	color := screen.Green
	if what != "set" {
		color = screen.Yellow
	}
	w.screen.Line(screen.Cell{Text: number(id), Color: screen.Dim}, screen.Cell{Text: name, Color: screen.Bold},
		screen.Cell{Text: what, Color: color}, screen.Cell{Text: string(value)})
}
