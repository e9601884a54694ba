package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"switchboard/client/backend"
)

// historyFlags are the flags of history and queue.
type historyFlags struct {
	after int64
	last  int
	since time.Duration
}

func addHistoryFlags(c *cobra.Command, f *historyFlags) {
	c.Flags().Int64Var(&f.after, "after", 0, "only messages above this `id`")
	c.Flags().IntVarP(&f.last, "last", "n", 100, "only the last `N` messages; 0 for all")
	c.Flags().DurationVar(&f.since, "since", 0, "only messages of the last `duration`, like 10m")
}

func (a *app) historyCommand() *cobra.Command {
	var f historyFlags
	c := &cobra.Command{
		Use: "history CHANNEL", Short: "Prints the messages that a channel keeps",
		Long: `Prints the last messages that a channel keeps, the oldest first. With --after it prints a gap if messages above the id
are gone. Lines are those of tail, which goes on with new messages.`,
		Example: `  switchboard history news
  switchboard history news --last 0 --since 1h --json | jq .data
  switchboard history news --after 735325130218701`,
		Args: args(1, 1, "a channel"), ValidArgsFunction: a.completeFirst(a.channelNames),
		SuggestFor: []string{"messages", "log"},
	}
	addHistoryFlags(c, &f)
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		_, err := a.printHistory(ctx, "channel", args[0], channelReader(sb, args[0]), f)
		return err
	})
	return c
}

func (a *app) queueCommand() *cobra.Command {
	var f historyFlags
	c := &cobra.Command{
		Use: "queue CLIENT", Short: "Prints the messages that wait for a device",
		Long: `Prints the messages that wait for a device, like alice/phone, the oldest first. It acknowledges nothing, so the device
receives them all the same. A device that the store does not know ends with exit code 3.`,
		Example: `  switchboard queue alice/phone
  switchboard queue alice/phone --json | jq .data`,
		Args: args(1, 1, "a client"), ValidArgsFunction: a.completeFirst(a.clientNames),
		SuggestFor: []string{"inbox", "pending"},
	}
	addHistoryFlags(c, &f)
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		total, err := a.printHistory(ctx, "client", args[0], queueReader(sb, args[0]), f)
		if err == nil && total == 0 && a.screen.Terminal {
			a.note("no message waits for %s", args[0])
		}
		return err
	})
	return c
}

// printHistory prints the messages of a channel or of the queue of a client, as kind says. It
// returns the number of all messages above --after.
func (a *app) printHistory(ctx context.Context, kind, name string, read reader, f historyFlags) (total int, err error) {
	if f.after < 0 || f.last < 0 || f.since < 0 {
		return 0, usage("--after, --last, --since: must not be below 0")
	}
	last, total, err := read.last(ctx, f.after, f.last)
	if err != nil {
		return 0, err
	}
	if f.after > 0 && !last.recovered {
		a.printGap(kind, name, f.after, last.id)
	}
	oldest := time.Time{}
	if f.since > 0 {
		oldest = time.Now().Add(-f.since)
	}
	for _, m := range last.messages {
		if !timeOf(m.ID).Before(oldest) {
			a.printMessage(kind, name, m)
		}
	}
	if left := total - len(last.messages); left > 0 && (f.since == 0 || !timeOf(last.messages[0].ID).Before(oldest)) {
		a.note("the last %d of %d messages; --last 0 shows all", len(last.messages), total)
	}
	return total, nil
}
