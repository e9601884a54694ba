package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

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

// completeFlag completes the value of a flag.
func (a *app) completeFlag(c *cobra.Command, flag string, get names) {
	if err := c.RegisterFlagCompletionFunc(flag, a.complete(get)); err != nil {
		panic(err) // there is no such flag, which every test of the command finds
	}
}
