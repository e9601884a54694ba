package delivery

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/peer"
	"switchboard/queue"
)

// confirmAtOnce is how many queues are asked for side by side; they share round trips.
const confirmParallel = 256

// stored has the witness remember what the store acknowledged, if the store may lose it.
func (p *Pusher) recordStored(at queueKey, id, prev int64, duplicate bool) {
	if p.opts.Epoch == nil {
		return
	}
	if duplicate {
		prev = -1
	}
	p.log.add(at, id, prev)
}

// failed has the witness remember a call that may have stored something all the same.
func (p *Pusher) recordFailure(at queueKey, err error) {
	if queue.Unsure(err) {
		p.log.addUncertain(at)
	}
}

// Confirm asks the store, after it failed over or restarted, for what it acknowledged to this server
// in the last minutes. Where it has lost some, all readers of the queue are told. It says in how
// many queues.
func (p *Pusher) Confirm(ctx context.Context) (losses int, err error) {
	var mu sync.Mutex // guards losses
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(confirmParallel)
	for at, n := range p.log.snapshot() {
		group.Go(func() error {
			for _, id := range append(slices.Clone(n.earlier), n.last) {
				lost, err := p.confirm(ctx, at, id)
				if err != nil {
					return err
				}
				if lost {
					mu.Lock()
					losses++
					mu.Unlock()
				}
			}
			p.log.removeConfirmed(at, n.earlier)
			return nil
		})
	}
	err = group.Wait()
	return losses, err
}

// ConfirmOne is Confirm for one message, which somebody else was told is stored. When it fails the
// next Confirm asks.
func (p *Pusher) ConfirmOne(ctx context.Context, kind peer.Kind, name string, id int64) error {
	at := queueKey{kind, name}
	p.log.add(at, id, -1)
	_, err := p.confirm(ctx, at, id)
	return err
}

func (p *Pusher) confirm(ctx context.Context, at queueKey, id int64) (lost bool, err error) {
	if id == 0 {
		return false, nil
	}
	ask := p.opts.Queue.ConfirmChannel
	if at.kind == peer.Client {
		ask = p.opts.Queue.ConfirmClient
	}
	marker, err := ask(ctx, at.name, id)
	if err != nil || marker == nil {
		return false, err
	}
	p.log.add(at, marker.ID, -1) // the next failover may lose it
	for _, server := range marker.Servers {
		p.notify(server, peer.Hint{Kind: at.kind, Name: at.name, ID: marker.ID, Prev: marker.Prev, Data: marker.Data})
	}
	return true, nil
}

// NotifyUncertain is for every beat that reached the store: owners are told of messages that may have been stored
// by calls that broke off, and old notes are forgotten.
func (p *Pusher) NotifyUncertain(ctx context.Context) error {
	p.log.rotate()
	channels, clients := p.log.takeUncertain()
	err := p.Notify(ctx, channels, clients)
	if err != nil {
		for _, channel := range channels {
			p.log.addUncertain(queueKey{peer.Channel, channel})
		}
		for _, client := range clients {
			p.log.addUncertain(queueKey{peer.Client, client})
		}
	}
	return err
}
