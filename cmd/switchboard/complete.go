package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"switchboard/client/backend"
)

// completeTimeout bounds a call for a completion: a person waits for it.
const completeTimeout = time.Second

// names returns names that begin with prefix, from the broker.
type names func(ctx context.Context, sb *backend.Client, prefix string) []string

func (a *app) channelNames(ctx context.Context, sb *backend.Client, prefix string) (list []string) {
	page, _ := sb.Channels(ctx, backend.PageQuery{Prefix: prefix}) // without an answer there is no completion
	for _, c := range page.Channels {
		list = append(list, c.Channel)
	}
	return list
}

func (a *app) userNames(ctx context.Context, sb *backend.Client, _ string) (list []string) {
	page, _ := sb.Users(ctx, backend.PageQuery{})
	for _, u := range page.Users {
		list = append(list, u.User)
	}
	return list
}

func (a *app) clientNames(ctx context.Context, sb *backend.Client, _ string) (list []string) {
	page, _ := sb.Users(ctx, backend.PageQuery{})
	for _, u := range page.Users {
		list = append(list, u.Clients...)
	}
	return list
}

// complete returns a completion with names from the broker. It prints no errors.
func (a *app) complete(get names) completion {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		stderr := a.stderr
		a.stderr = io.Discard
		defer func() { a.stderr = stderr }()
		a.timeout, a.retryFor = completeTimeout, 0
		sb, err := a.connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer sb.Close()
		ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
		defer cancel()
		return get(ctx, sb, prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFirst completes the first argument.
func (a *app) completeFirst(get names) completion {
	complete := a.complete(get)
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, args, prefix)
	}
}

// completeFlags completes the values of all flags of a command and of those below it that are
// users, channels, clients or profiles, as their usages say.
func (a *app) completeFlags(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch value, _ := pflag.UnquoteUsage(f); {
		case value == "user":
			a.register(c, f.Name, a.complete(a.userNames))
		case value == "channel":
			a.register(c, f.Name, a.complete(a.channelNames))
		case value == "id" && f.Name == "client":
			a.register(c, f.Name, a.complete(a.clientNames))
		case f.Name == "profile":
			a.register(c, f.Name, a.completeProfile)
		}
	})
	for _, sub := range c.Commands() {
		a.completeFlags(sub)
	}
}

// register sets the completion of the value of a flag.
func (a *app) register(c *cobra.Command, flag string, f completion) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err) // there is no such flag, which every test of the command finds
	}
}

// collection is a list of the kit whose ids complete the first argument of commands.
type collection struct{ list, id string }

// collections are the lists by the path that precedes an id.
var collections = map[string]collection{
	"/v1/rooms":    {"rooms", "id"},
	"/v1/holds":    {"resources", "resource"},
	"/v1/boards":   {"boards", "board"},
	"/v1/accounts": {"accounts", "id"},
}

// completeKit completes the first argument of a command of the kit by the ids of its collection,
// and an argument that is a user by the online users.
func (a *app) completeKit(k kitCommand) completion {
	path, _, _ := strings.Cut(k.path, "/{}")
	from, listed := collections[path]
	fixed := strings.Count(k.path, "{}")
	_, placeholders, _ := strings.Cut(k.use, " ")
	order := strings.Fields(placeholders)
	ids := a.complete(func(ctx context.Context, sb *backend.Client, _ string) []string { return from.ids(ctx, sb, path) })
	users := a.complete(a.userNames)
	return func(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		n := len(args)
		switch {
		case n == 0 && fixed > 0 && listed:
			return ids(c, args, prefix)
		case n < len(order) && strings.HasPrefix(order[n], "USER"), n >= len(order) && strings.HasSuffix(placeholders, "USER..."):
			return users(c, args, prefix)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// ids returns the ids of the first page of a list.
func (l collection) ids(ctx context.Context, sb *backend.Client, path string) (ids []string) {
	var page map[string]json.RawMessage
	var rows []map[string]any
	_ = sb.Call(ctx, backend.Request{Method: getCall, Path: path}, &page) // or else no completion
	_ = json.Unmarshal(page[l.list], &rows)
	for _, row := range rows {
		if id, ok := row[l.id].(string); ok {
			ids = append(ids, id)
		}
	}
	return ids
}
