package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"switchboard/client/backend"
	"switchboard/internal/wire"
)

const (
	// tailWait is how long a call waits for the next message.
	tailWait = 25 * time.Second
	// tailPage is the most messages of one answer.
	tailPage = 1000
	// devicesEvery is the interval in which new devices of a user are looked for.
	devicesEvery = 2 * time.Second
)

// tailFlags are the flags of tail.
type tailFlags struct {
	users, clients []string
	all            bool
	after          int64
	last, count    int
	position       string
}

func (a *app) tailCommand() *cobra.Command {
	f := tailFlags{after: -1}
	c := &cobra.Command{
		Use: "tail [CHANNEL]...", Short: "Follows the messages of channels, devices or users",
		Long: `Follows channels, the queues of devices (--client), or those of all devices of a user (--user), until it is
interrupted. It reads with the API key and acknowledges nothing, so the devices receive their messages all the same.

A channel is followed from now on, or from --after or --last. Of a queue, the messages that wait are printed first. A
message that a device acknowledges at once may have left its queue before tail sees it.

tail continues after the last message that it has printed, on any of the instances in SWITCHBOARD_URL, for as long as
the broker keeps the messages. It prints a gap if some are missing. With --position it also continues after its own
restart.

A line has the channel or client, the id and the data; then the changes of fields, if there are any. With --json it is
{"type":"message","channel":…,"id":…,"data":…}, or {"type":"gap","channel":…,"after":…,"id":…}: some messages above
after, up to id, are gone.`,
		Example: `  switchboard tail news sports
  switchboard tail news --last 10
  switchboard tail --user alice --json | jq .data
  switchboard tail orders --position orders.position --json | ./import`,
		SuggestFor: []string{"follow"},
		Args:       cobra.ArbitraryArgs, ValidArgsFunction: a.complete(a.channelNames),
	}
	c.RunE = a.call(func(ctx context.Context, sb *backend.Client, args []string) error {
		return a.tail(ctx, sb, f, args)
	})
	flags := c.Flags()
	flags.StringArrayVarP(&f.users, "user", "u", nil, "all devices of a `user`; repeat it for several")
	flags.StringArrayVarP(&f.clients, "client", "c", nil, "the queue of one device, like alice/phone; repeat it for several (`id`)")
	flags.BoolVar(&f.all, "all", false, "the messages to all clients")
	flags.Int64Var(&f.after, "after", -1, "only messages above this `id`; 0 for all that are kept")
	flags.IntVarP(&f.last, "last", "n", 0, "begin with the last `N` messages that a channel keeps")
	flags.IntVar(&f.count, "count", 0, "end after `N` messages")
	flags.StringVar(&f.position, "position", "", "`file` with the positions: read at the start, written after messages are printed")
	return c
}

// tail is a running tail command.
type tail struct {
	*app
	sb    *backend.Client
	flags tailFlags
	stop  context.CancelFunc

	mu        sync.Mutex // guards the fields below, and keeps the lines of a page together
	printed   int
	positions positions
	warned    bool // an instance does not answer
}

func (a *app) tail(ctx context.Context, sb *backend.Client, f tailFlags, channels []string) error {
	if f.all {
		channels = append(channels, wire.AllChannel)
	}
	switch {
	case len(channels)+len(f.users)+len(f.clients) == 0:
		return usage("missing: a channel, --user, --client or --all")
	case f.after >= 0 && f.last > 0:
		return usage("--after, --last: only one of them")
	}
	saved, err := readPositions(f.position)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t := &tail{app: a, sb: sb, flags: f, stop: stop, positions: saved}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range channels {
		group.Go(func() error { return t.follow(ctx, t.channel(name)) })
	}
	for _, id := range f.clients {
		group.Go(func() error { return t.follow(ctx, t.queue(id)) })
	}
	for _, user := range f.users {
		group.Go(func() error { return t.followUser(ctx, user) })
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil || err != nil && !errors.Is(err, context.Canceled) && !isUnreachable(err) {
		return err
	}
	return nil
}

// followUser follows the devices of a user, also those that appear later.
func (t *tail) followUser(ctx context.Context, user string) error {
	group, ctx := errgroup.WithContext(ctx)
	known := map[string]bool{}
	tick := time.NewTicker(devicesEvery)
	defer tick.Stop()
	for {
		found, err := t.sb.User(ctx, user)
		if err != nil && exitCode(err) != exitUnavailable {
			group.Go(func() error { return err })
			return group.Wait()
		}
		for _, device := range found.Clients {
			if !known[device.Client] {
				known[device.Client] = true
				group.Go(func() error { return t.follow(ctx, t.queue(device.Client)) })
			}
		}
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-tick.C:
		}
	}
}
