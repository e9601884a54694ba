package main

import (
	"context"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

// disconnected is a line of disconnect with --json.
type disconnected struct {
	User         string `json:"user,omitempty"`
	Client       string `json:"client,omitempty"`
	Disconnected int    `json:"disconnected"`
}

func (a *app) disconnectCommand() *cobra.Command {
	var clients []string
	c := &cobra.Command{
		Use: "disconnect [USER]...", Short: "Closes the connections of users or devices",
		Long: `Closes all connections of USERs, or those of single devices (--client), and prints how many there were. The clients
receive the close reason "disconnected", and do not reconnect by themselves. The API key needs the scope admin.

A client whose token is still valid may connect again, if its application asks for it.`,
		Example: `  switchboard disconnect mallory
  switchboard disconnect --client alice/phone`,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.complete(a.userNames), SuggestFor: []string{"kick", "kill", "close"},
	}
	c.Flags().StringArrayVarP(&clients, "client", "c", nil, "one device, like alice/phone; repeat it for several (`id`)")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, users []string) error {
		if len(users)+len(clients) == 0 {
			return usage("missing: a user or --client")
		}
		for _, user := range users {
			n, err := sb.DisconnectUser(ctx, user)
			if err != nil {
				return err
			}
			a.printDisconnected(user, disconnected{User: user, Disconnected: n})
		}
		for _, id := range clients {
			n, err := sb.DisconnectClient(ctx, id)
			if err != nil {
				return err
			}
			a.printDisconnected(id, disconnected{Client: id, Disconnected: n})
		}
		return nil
	})
	return c
}

func (a *app) printDisconnected(name string, d disconnected) {
	a.screen.Value(d, func() {
		a.screen.Line(screen.Cell{Text: name, Color: screen.Bold}, screen.Cell{Text: count(d.Disconnected, "connection") + " closed"})
	})
}
