package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client"
	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

func (a *app) stateCommand() *cobra.Command {
	return group("state", "Reads, changes and follows the fields of channels",
		"Reads, changes and follows the fields of channels, see docs/state.md.",
		a.stateGetCommand(), a.stateSetCommand(), a.stateWatchCommand())
}

func (a *app) stateGetCommand() *cobra.Command {
	var prefix string
	var limit int
	c := &cobra.Command{
		Use: "get CHANNEL [FIELD]", Short: "Prints the fields of a channel, or the value of one",
		Long: `Prints the fields of a channel with their ids, values and ends. With FIELD it prints the value alone; a field that is
absent ends with exit code 3.`,
		Args: args(1, 2, "a channel, and a field"), ValidArgsFunction: a.completeFirst(a.channelNames),
	}
	c.Flags().StringVar(&prefix, "prefix", "", "only fields whose names begin with `text`")
	c.Flags().IntVar(&limit, "limit", 1000, "the most fields; 0 for all")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		if len(args) == 2 {
			return a.getField(ctx, sb, args[0], args[1])
		}
		all, err := readState(ctx, sb, args[0], prefix, limit)
		return a.show(all, err, func() {
			a.screen.Table([]string{"field", "id", "value", "ends"}, a.fieldRows(all.Fields))
			a.noteMore(all.Cursor, len(all.Fields))
		})
	})
	return c
}

// readState reads up to limit fields, 0 for all, with their pages as one.
func readState(ctx context.Context, sb *backend.Client, channel, prefix string, limit int) (backend.StatePage, error) {
	all := backend.StatePage{Channel: channel, Fields: backend.Fields{}}
	err := pages(limit, func(cursor string, n int) (string, int, error) {
		p, err := sb.State(ctx, channel, backend.PageQuery{Prefix: prefix, Cursor: cursor, Limit: n})
		if cursor == "" {
			all.ID = p.ID // of the oldest page: later changes of its fields are missing
		}
		maps.Copy(all.Fields, p.Fields)
		all.Cursor = p.Cursor
		return p.Cursor, len(all.Fields), err
	})
	return all, err
}

func (a *app) fieldRows(fields backend.Fields) [][]screen.Cell {
	var rows [][]screen.Cell
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		f := fields[name]
		if f == nil {
			continue
		}
		ends := ""
		if !f.Until.IsZero() {
			ends = a.screen.When(f.Until.UnixMilli(), time.Now())
		}
		if f.Away {
			ends += " (away)"
		}
		rows = append(rows, []screen.Cell{
			{Text: name, Color: screen.Bold}, {Text: number(f.ID), Color: screen.Dim}, {Text: string(f.Value)}, {Text: ends},
		})
	}
	return rows
}

func (a *app) getField(ctx context.Context, sb *backend.Client, channel, field string) error {
	rows, err := sb.QueryState(ctx, []string{channel}, []string{field})
	if err != nil {
		return err
	}
	if rows[0].Error != nil {
		return rows[0].Error
	}
	f := rows[0].Fields[field]
	if f == nil {
		return &backend.Error{Code: client.NotFound, Message: fmt.Sprintf("channel %s has no field %s", channel, field)}
	}
	a.screen.Value(rows[0], func() { a.screen.Line(screen.Cell{Text: string(f.Value)}) })
	return nil
}

func (a *app) stateSetCommand() *cobra.Command {
	var key string
	var change change
	var durable, disown bool
	var ttl time.Duration
	c := &cobra.Command{
		Use: "set CHANNEL [FIELD=VALUE]...", Short: "Changes fields of a channel, all of them or none",
		Long: `Changes fields of a channel, all of them or none. VALUE is JSON, or else text. A change that a condition or a limit
refuses ends with exit code 5, and the current values are printed.`,
		Example: `  switchboard state set room:7 turn=amy moves=0 --if turn=absent
  switchboard state set room:7 --add moves=1:0:9
  switchboard state set room:7 seat/A1='{"n":1}' --ttl 10m`,
		Args: args(1, -1, "a channel and FIELD=VALUE"), ValidArgsFunction: a.completeFirst(a.channelNames),
	}
	addChangeFlags(c, &change)
	c.Flags().BoolVar(&change.text, "text", false, "send values as text, also if they are JSON")
	c.Flags().StringVar(&key, "key", "", "idempotency `key`: the same key within 10 minutes changes nothing more")
	c.Flags().BoolVar(&durable, "durable", false, "accept only when a replica of Redis has the change")
	c.Flags().BoolVar(&disown, "disown", false, "remove all owners of the fields")
	c.Flags().DurationVar(&ttl, "ttl", 0, "lease of the fields")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		p := backend.Push{Channel: args[0], Key: key, Durable: durable, Disown: disown, TTL: ttl}
		change.set = append(change.set, args[1:]...)
		if err := change.apply(&p); err != nil {
			return err
		}
		if p.Set == nil && p.Del == nil && p.Add == nil && p.Touch == nil {
			return usage("missing: FIELD=VALUE, --del, --add or --touch")
		}
		if p.Key == "" {
			p.Key = rand.Text()
		}
		return a.pushOne(ctx, sb, p)
	})
	return c
}
