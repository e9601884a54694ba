package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
)

func (a *app) eraseCommand() *cobra.Command {
	var durable bool
	c := &cobra.Command{
		Use: "erase CHANNEL ID", Short: "Erases a message of a channel",
		Long: `Erases the message of CHANNEL with this ID, which history shows: its data and its author leave Redis, the histories and the
memory of all brokers. Clients receive the id, and erase what they show. Its changes of fields stay.

It prints when the message was erased. To erase it again changes nothing. A message that the channel no longer has ends with
exit code 3, but one that clients may still show is reported to them all the same.`,
		Example: `  switchboard erase chat:42 735325130218708
  switchboard erase chat:42 735325130218708 --durable`,
		Args: args(2, 2, "a channel and the id of a message"), ValidArgsFunction: a.completeFirst(a.channelNames),
		SuggestFor: []string{"delete", "redact", "retract"},
	}
	c.Flags().BoolVar(&durable, "durable", false, "succeed only when a replica of Redis has erased it too")
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, names []string) error {
		id, err := strconv.ParseInt(names[1], 10, 64)
		if err != nil || id <= 0 {
			return usage("ID: want the id of a message, a positive number")
		}
		answer, err := sb.EraseMessage(ctx, backend.Erase{Channel: names[0], ID: id, Durable: durable})
		return a.show(answer, err, func() {
			a.screen.Pairs("erased", a.screen.When(answer.Erased, time.Now()), "report", number(answer.Report),
				"servers", fmt.Sprint(answer.Servers))
		})
	})
	return c
}
