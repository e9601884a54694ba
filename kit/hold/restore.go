package hold

import (
	"context"
	"strings"
	"time"

	"switchboard/janitor/task"
)

// restoreEvery is the interval of the janitor's round.
const restoreEvery = time.Minute

// Restore returns a round of a janitor that finds resources without a card by their channels. A
// failover of the store may have lost cards and due lists that it had acknowledged. The round only
// notes them on the due list: the brokers do the rest.
func Restore(o CheckOptions) task.Round {
	return task.Round{Name: "holds", Every: restoreEvery, Do: func(ctx context.Context) (restored int, err error) {
		var names []string
		for channel, err := range o.States.StateChannels(ctx) {
			if err != nil {
				return restored, err
			}
			if name, ours := strings.CutPrefix(channel, channelPrefix); ours {
				names = append(names, name)
			}
			if len(names) == batchSize {
				n, err := o.scheduleMissing(ctx, names)
				if restored += n; err != nil {
					return restored, err
				}
				names = names[:0]
			}
		}
		n, err := o.scheduleMissing(ctx, names)
		return restored + n, err
	}}
}

// scheduleMissing makes the resources due that have no card, and returns their number.
func (o CheckOptions) scheduleMissing(ctx context.Context, names []string) (int, error) {
	if len(names) == 0 {
		return 0, nil
	}
	cards, err := o.Index.Get(ctx, names...)
	if err != nil {
		return 0, err
	}
	var missing []string
	for i, c := range cards {
		if c.ID == "" {
			missing = append(missing, names[i])
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}
	return len(missing), o.Index.Schedule(ctx, 0, missing...)
}
