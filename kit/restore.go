package kit

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"switchboard/janitor/task"
	"switchboard/kit/index"
	"switchboard/queue"
)

// StateReader reads the states of channels. *broker.Host and the queues implement it.
type StateReader interface {
	// ReadStates returns an outcome for each read, in one round trip.
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// States are the states of all channels. The queues implement it.
type States interface {
	StateReader
	// StateChannels returns the channels that have a state. A channel may come twice.
	StateChannels(ctx context.Context) iter.Seq2[string, error]
}

// CheckOptions are the stores that a check, or a round of a janitor, reads.
type CheckOptions struct {
	Index  index.Index
	States States
}

// Restored is a kind of documents whose cards a round restores.
type Restored struct {
	// Name is the name of the round.
	Name string
	// Prefix is that of the channels of the documents. The rest of a channel's name is the id.
	Prefix string
	// In is the time until a document without a card is due.
	In time.Duration
	// Other is called for each channel without the prefix. Nil means no call.
	Other func(ctx context.Context, channel string) error
}

const (
	// restoreEvery is the interval of the rounds that restore cards.
	restoreEvery = time.Minute
	// restoreBatch is how many cards such a round reads in one round trip.
	restoreBatch = 100
)

// Restore returns a round of a janitor that finds documents without a card by their channels. A
// failover of the store may have lost cards and due lists that it had acknowledged. The round only
// notes the documents on the due list: the brokers do the rest. It counts those that it noted, so a
// quiet system logs nothing.
func Restore(o CheckOptions, r Restored) task.Round {
	return task.Round{Name: r.Name, Every: restoreEvery, Do: func(ctx context.Context) (restored int, err error) {
		ids := make([]string, 0, restoreBatch)
		for channel, err := range o.States.StateChannels(ctx) {
			if err != nil {
				return restored, err
			}
			if id, found := strings.CutPrefix(channel, r.Prefix); found {
				ids = append(ids, id)
			} else if r.Other != nil {
				if err := r.Other(ctx, channel); err != nil {
					return restored, err
				}
			}
			if len(ids) == restoreBatch {
				n, err := o.scheduleMissing(ctx, r, ids)
				if restored += n; err != nil {
					return restored, err
				}
				ids = ids[:0]
			}
		}
		n, err := o.scheduleMissing(ctx, r, ids)
		return restored + n, err
	}}
}

// scheduleMissing makes the documents that have fields and no card due, and returns their number. A
// document that has ended has neither: its channel is listed until the records of the owners of its
// fields have ended, too.
func (o CheckOptions) scheduleMissing(ctx context.Context, r Restored, ids []string) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	cards, err := o.Index.Get(ctx, ids...)
	if err != nil {
		return 0, err
	}
	var reads []queue.StateRead
	for i, c := range cards {
		if c.ID == "" {
			reads = append(reads, queue.StateRead{Channel: r.Prefix + ids[i], Limit: 1})
		}
	}
	if len(reads) == 0 {
		return 0, nil
	}
	var missing []string
	for i, o := range o.States.ReadStates(ctx, reads) {
		if o.Err != nil {
			return 0, fmt.Errorf("read the state of %s: %w", reads[i].Channel, o.Err)
		}
		if len(o.Value.Fields) > 0 {
			missing = append(missing, strings.TrimPrefix(reads[i].Channel, r.Prefix))
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}
	return len(missing), o.Index.Schedule(ctx, r.In, missing...)
}
