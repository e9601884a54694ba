package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
)

func (a *app) tokenRevokeCommand() *cobra.Command {
	var client, before string
	var durable bool
	c := &cobra.Command{
		Use: "revoke USER", Short: "Makes the broker refuse tokens of a user",
		Long: `Makes the broker refuse the tokens of a user that were issued before a time, and ends the connections that used
them. The time is now, or that of --before. Of several calls, the latest time counts. The API key needs the scope admin.`,
		Example: `  switchboard token revoke alice
  switchboard token revoke alice --before 2026-11-24T10:00:00Z
  switchboard token revoke --client alice/phone`,
		Args: args(0, 1, "USER"), ValidArgsFunction: a.completeFirst(a.userNames),
	}
	c.Flags().StringVarP(&client, "client", "c", "", "the tokens of one client, like alice/phone (`id`)")
	c.Flags().StringVar(&before, "before", "", "the `time` before which the tokens were issued, like 2026-11-24T10:00:00Z")
	c.Flags().BoolVar(&durable, "durable", false, "wait until a replica of Redis has it")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, users []string) error {
		r := backend.Revocation{Durable: durable}
		if before != "" {
			t, err := time.Parse(time.RFC3339, before)
			if err != nil {
				return usage("--before: want a time like 2026-11-24T10:00:00Z")
			}
			r.Before = t
		}
		if (len(users) == 0) == (client == "") {
			return usage("give either a user or --client")
		}
		revoke := func() (backend.Revoked, error) { return sb.RevokeClient(ctx, client, r) }
		if client == "" {
			revoke = func() (backend.Revoked, error) { return sb.RevokeUser(ctx, users[0], r) }
		}
		done, err := revoke()
		return a.show(done, err, func() {
			a.screen.Pairs("issued before", time.UnixMilli(done.Before).UTC().Format(time.RFC3339Nano), "until", time.UnixMilli(done.Until).UTC().Format(time.RFC3339),
				"disconnected", fmt.Sprint(done.Disconnected))
			if done.Pending > 0 {
				a.note("%s did not answer, and ends its connections within some seconds", count(done.Pending, "instance"))
			}
		})
	})
	return c
}
