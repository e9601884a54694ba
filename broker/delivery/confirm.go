package delivery

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/peer"
	"switchboard/internal/slots"
	"switchboard/internal/state"
	"switchboard/queue"
)

// confirmParallel is how many queues are confirmed at the same time; they share round trips.
const confirmParallel = 256

// recordStored records that the store acknowledged a message, if the store may lose messages.
func (p *Pusher) recordStored(key queueKey, id, prev int64, duplicate bool) {
	if p.opts.Epoch == nil {
		return
	}
	if duplicate {
		prev = unknownPrev
	}
	if !p.log.add(key, id, prev) && p.opts.Unremembered != nil {
		p.opts.Unremembered()
	}
}

// ConfirmsAll reports whether Confirm asks for all messages that the store has acknowledged lately.
// Otherwise there were too many queues to remember them: the loss of a message shows only if an
// owner had received it.
func (p *Pusher) ConfirmsAll() bool { return !p.log.partial() }

// Uncertain reports whether a failed call may have stored a message, and its owners are not
// notified since.
func (p *Pusher) Uncertain() bool { return p.log.hasUncertain() }

// recordFailure records a call that failed but may have stored a message.
func (p *Pusher) recordFailure(key queueKey, err error) {
	if queue.OutcomeUnknown(err) {
		p.log.addUncertain(key)
	}
}

// Confirm asks the store, after a failover or restart that concerns the slots, for the messages in
// them that it acknowledged to this server in the last minutes. If the store has lost some of them
// in a queue, all readers of the queue receive a gap. losses is the number of losses found.
func (p *Pusher) Confirm(ctx context.Context, of *slots.Set) (losses int, err error) {
	var mu sync.Mutex // guards losses
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(confirmParallel)
	for key, ids := range p.log.snapshot(of) {
		group.Go(func() error {
			n, err := p.confirmQueue(ctx, key, ids)
			mu.Lock()
			defer mu.Unlock()
			losses += n
			return err
		})
	}
	err = group.Wait()
	return losses, err
}

// confirmQueue asks for the last message of each history of a queue. It also asks again for the
// losses that were reported lately, since the store may have lost their markers.
func (p *Pusher) confirmQueue(ctx context.Context, key queueKey, ids storedIDs) (losses int, err error) {
	for _, id := range slices.Concat(p.log.reportedLosses(key), ids.earlier, []int64{ids.last}) {
		lost, err := p.confirm(ctx, key, id)
		if err != nil {
			return losses, err
		}
		if lost {
			losses++
		}
	}
	p.log.removeConfirmed(key, ids.earlier)
	return losses, nil
}

// ConfirmOne is Confirm for one message that another server stored. If it fails, the next Confirm
// asks again.
func (p *Pusher) ConfirmOne(ctx context.Context, kind peer.Kind, name string, id int64) error {
	key := queueKey{kind, name}
	p.log.add(key, id, unknownPrev)
	_, err := p.confirm(ctx, key, id)
	return err
}

func (p *Pusher) confirm(ctx context.Context, key queueKey, id int64) (lost bool, err error) {
	if id == 0 {
		return false, nil
	}
	ask := p.opts.Queue.ConfirmChannel
	if key.kind == peer.Client {
		ask = p.opts.Queue.ConfirmClient
	}
	marker, err := ask(ctx, key.name, id)
	if err != nil || marker == nil {
		return false, err
	}
	p.log.addReported(key, id, marker.ID) // the next failover may lose the marker
	for _, server := range marker.Servers {
		p.notify(server, peer.Hint{Kind: key.kind, Name: key.name, ID: marker.ID, Prev: marker.Prev, Data: marker.Data}, state.Message{})
	}
	return true, nil
}

// NotifyUncertain notifies the owners of queues in which a failed call may have stored a message.
// If there were too many of them to remember, it calls Options.MissHints. It also removes old ids
// from the log of stored messages. Call it after each successful beat, but not while the store may
// have failed over: Confirm needs the ids.
func (p *Pusher) NotifyUncertain(ctx context.Context) error {
	p.log.rotate()
	uncertain := p.log.takeUncertain()
	var channels, clients []string
	for key := range uncertain {
		switch {
		case key == anyQueue:
		case key.kind == peer.Channel:
			channels = append(channels, key.name)
		default:
			clients = append(clients, key.name)
		}
	}
	err := p.Notify(ctx, channels, clients)
	if _, some := uncertain[anyQueue]; some && err == nil {
		p.opts.MissHints()
	}
	if err != nil {
		for key := range uncertain {
			p.log.addUncertain(key)
		}
	}
	return err
}
