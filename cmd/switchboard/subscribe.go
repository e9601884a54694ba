package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
)

// subscribers are the flags that name users and clients.
type subscribers struct{ users, clients []string }

// subscriber is a user or a client in a line of a command with --json.
type subscriber struct {
	User   string `json:"user,omitempty"`
	Client string `json:"client,omitempty"`
}

// changed is a line of subscribe and unsubscribe with --json.
type changed struct {
	subscriber
	backend.SubscriptionsChanged
}

func (a *app) subscribeCommand() *cobra.Command {
	var to subscribers
	var after int64
	c := &cobra.Command{
		Use: "subscribe CHANNEL...", Short: "Subscribes users or devices to channels",
		Long: `Subscribes all devices of users (--user), or single devices (--client), to CHANNELs, also those that connect later. The
access rules need not let them subscribe by themselves. The API key needs the scope admin.

A channel to which a connected device cannot be subscribed is named on standard error.`,
		Example: `  switchboard subscribe team:7 --user alice
  switchboard subscribe chat:42 --client alice/phone --after 0`,
		Args: args(1, 64, "channels"), ValidArgsFunction: a.complete(a.channelNames), SuggestFor: []string{"join"},
	}
	to.define(c)
	c.Flags().Int64Var(&after, "after", 0, "begin after the message with this `id` of one channel; 0: with all messages that are kept (default now)")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, channels []string) error {
		s := backend.Subscriptions{Channels: channels}
		if c.Flags().Changed("after") {
			s.After = &after
		}
		return a.changeSubscriptions(to, func(of subscriber) (backend.SubscriptionsChanged, error) {
			if of.Client != "" {
				return sb.SubscribeClient(ctx, of.Client, s)
			}
			return sb.SubscribeUser(ctx, of.User, s)
		})
	})
	return c
}

func (a *app) unsubscribeCommand() *cobra.Command {
	var to subscribers
	c := &cobra.Command{
		Use: "unsubscribe CHANNEL...", Short: "Unsubscribes users or devices from channels",
		Long: `Unsubscribes all devices of users (--user), or single devices (--client), from CHANNELs, also those that are away. A device
that the access rules let subscribe by itself may do so again. The API key needs the scope admin.`,
		Example: `  switchboard unsubscribe team:7 --user alice
  switchboard unsubscribe chat:42 --client alice/phone`,
		Args: args(1, 64, "channels"), ValidArgsFunction: a.complete(a.channelNames), SuggestFor: []string{"leave"},
	}
	to.define(c)
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, channels []string) error {
		return a.changeSubscriptions(to, func(of subscriber) (backend.SubscriptionsChanged, error) {
			if of.Client != "" {
				return sb.UnsubscribeClient(ctx, of.Client, channels...)
			}
			return sb.UnsubscribeUser(ctx, of.User, channels...)
		})
	})
	return c
}

func (s *subscribers) define(c *cobra.Command) {
	c.Flags().StringArrayVarP(&s.users, "user", "u", nil, "all devices of a `user`; repeat it for several")
	c.Flags().StringArrayVarP(&s.clients, "client", "c", nil, "one device, like alice/phone; repeat it for several (`id`)")
}

// each calls f for each user and each client, until one call fails. missing is what the command
// line lacks if there is none.
func (s *subscribers) each(missing string, f func(of subscriber) error) error {
	if len(s.users)+len(s.clients) == 0 {
		return usage("missing: %s", missing)
	}
	for _, user := range s.users {
		if err := f(subscriber{User: user}); err != nil {
			return err
		}
	}
	for _, id := range s.clients {
		if err := f(subscriber{Client: id}); err != nil {
			return err
		}
	}
	return nil
}

// changeSubscriptions makes a call for each user and each client, and prints the answers.
func (a *app) changeSubscriptions(to subscribers, call func(of subscriber) (backend.SubscriptionsChanged, error)) error {
	return to.each("--user or --client", func(of subscriber) error {
		c, err := call(of)
		err = a.show(changed{of, c}, err, func() {
			a.screen.Pairs("for", of.User+of.Client, "connected", fmt.Sprint(c.Clients), "until", time.UnixMilli(c.Until).UTC().Format(time.RFC3339))
		})
		for _, r := range c.Refused {
			a.note("%s is not subscribed to %s: %s: %s", r.Client, r.Channel, r.Code, r.Message)
		}
		if c.Pending > 0 {
			a.note("%s did not answer, and follows within some seconds", count(c.Pending, "instance"))
		}
		return err
	})
}
