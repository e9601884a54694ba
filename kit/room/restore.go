package room

import (
	"context"
	"strings"
	"time"

	"switchboard/janitor/task"
)

// restoreEvery is the interval of the janitor's round.
const restoreEvery = time.Minute

// Restore returns a round of a janitor that finds rooms without a card, and lobbies, by their
// channels. A failover of the store may have lost cards and due lists that it had acknowledged. The
// round only notes them on the due list: the brokers do the rest.
func Restore(o CheckOptions) task.Round {
	return task.Round{Name: "rooms", Every: restoreEvery, Do: func(ctx context.Context) (restored int, err error) {
		var ids []string
		schedule := func() error {
			n, err := o.scheduleMissing(ctx, ids)
			restored, ids = restored+n, ids[:0]
			return err
		}
		for channel, err := range o.States.StateChannels(ctx) {
			if err != nil {
				return restored, err
			}
			if lobby, found := strings.CutPrefix(channel, lobbyPrefix); found {
				if err := o.Index.Schedule(ctx, lobbyRefresh, lobbyTask+lobby); err != nil {
					return restored, err
				}
			}
			if id, found := strings.CutPrefix(channel, channelPrefix); found {
				ids = append(ids, id)
			}
			if len(ids) == batchSize {
				if err := schedule(); err != nil {
					return restored, err
				}
			}
		}
		return restored, schedule()
	}}
}

// scheduleMissing makes the rooms due that have no card, and returns their number.
func (o CheckOptions) scheduleMissing(ctx context.Context, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	cards, err := o.Index.Get(ctx, ids...)
	if err != nil {
		return 0, err
	}
	var missing []string
	for i, c := range cards {
		if c.ID == "" {
			missing = append(missing, ids[i])
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}
	return len(missing), o.Index.Schedule(ctx, dueAfter, missing...)
}
