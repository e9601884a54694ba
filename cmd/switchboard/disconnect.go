package main

import (
	"context"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

// disconnected is a line of disconnect with --json.
type disconnected struct {
	subscriber
	Disconnected int `json:"disconnected"`
}

func (a *app) disconnectCommand() *cobra.Command {
	var of subscribers
	c := &cobra.Command{
		Use: "disconnect [USER]...", Short: "Closes the connections of users or devices",
		Long: `Closes all connections of USERs, or those of single devices (--client), and prints how many there were. The clients
receive the close reason "disconnected", and do not reconnect by themselves. The API key needs the scope admin.

A client whose token is still valid may connect again, if its application asks for it.`,
		Example: `  switchboard disconnect mallory
  switchboard disconnect --client alice/phone`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.complete(a.userNames), SuggestFor: []string{"kick", "kill", "close"},
	}
	c.Flags().StringArrayVarP(&of.clients, "client", "c", nil, "one device, like alice/phone; repeat it for several (`id`)")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, users []string) error {
		of.users = users
		return of.each("a user or --client", func(s subscriber) (err error) {
			d := disconnected{subscriber: s}
			if s.Client != "" {
				d.Disconnected, err = sb.DisconnectClient(ctx, s.Client)
			} else {
				d.Disconnected, err = sb.DisconnectUser(ctx, s.User)
			}
			return a.show(d, err, func() {
				a.screen.Line(screen.Cell{Text: s.User + s.Client, Color: screen.Bold}, screen.Cell{Text: count(d.Disconnected, "connection") + " closed"})
			})
		})
	})
	return c
}
