package broker

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"switchboard/broker/hub"
	"switchboard/internal/wire"
	"switchboard/queue"
)

const (
	// probeTimeout is how long a probe may take. Longer than that, and clients wait too.
	probeTimeout = 2 * time.Second
	// probeEvery is how long a result serves all who ask.
	probeEvery = 250 * time.Millisecond
	// probeChannels is how many channels all servers share for their probes. A channel of its own
	// for each would leave a key behind at every start.
	probeChannels = 64
)

var (
	errUnbound = errors.New("the store does not have this server as one with subscribers")
	errLate    = errors.New("a message was stored but did not come through in time")
)

// probe sends a message to itself the way that all messages go: it is stored, its owners are read, the
// queue is drained, and an event loop delivers it.
type probe struct {
	b       *Broker
	channel string

	turn   sync.Mutex // held by the one who asks the store; guards the fields below
	asked  time.Time
	result unready
	sub    *hub.Subscription // nil before the first
	got    chan int64        // ids that arrived; the newest replaces one that nobody took
}

func newProbe(b *Broker) *probe {
	h := fnv.New32a()
	_, _ = h.Write([]byte(b.serverID()))
	return &probe{b: b, channel: fmt.Sprintf("$probe-%d", h.Sum32()%probeChannels), got: make(chan int64, 1)}
}

// check sends a message, unless one was sent just now. Callers at the same time share one.
func (p *probe) check() unready {
	p.turn.Lock()
	defer p.turn.Unlock()
	if time.Since(p.asked) >= probeEvery {
		ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
		defer cancel()
		p.result = p.send(ctx)
		p.asked = time.Now()
		if p.result.step == stepOwners {
			p.b.doubts.Add(1) // as for all other channels, probably
		}
	}
	return p.result
}

func (p *probe) send(ctx context.Context) unready {
	if err := p.subscribe(ctx); err != nil {
		return unready{stepSubscribe, "the channel of this message could not be subscribed to", err}
	}
	sent, err := p.b.opts.Queue.AppendChannel(ctx, queue.ChannelPush{Channel: p.channel, Data: []byte(`"probe"`)})
	if err != nil {
		return unready{stepStore, "a message could not be stored", err}
	}
	if !slices.Contains(sent.Servers, p.b.serverID()) {
		return unready{stepOwners, errUnbound.Error(), errUnbound}
	}
	p.sub.Channel.Hint(sent.ID, sent.Prev, nil) // without the message, so that it is read from the store
	for {
		select {
		case id := <-p.got:
			if id >= sent.ID {
				return unready{}
			}
		case <-ctx.Done():
			return unready{stepDelivery, errLate.Error(), errLate}
		}
	}
}

func (p *probe) subscribe(ctx context.Context) error {
	if p.sub != nil {
		return nil
	}
	position, err := p.b.hub.Acquire(ctx, p.channel, nil)
	if err != nil {
		return err
	}
	l := p.b.web.Loops()[0]
	begun := make(chan *hub.Subscription, 1)
	l.Post(func() {
		sub := new(hub.Subscription)
		p.b.hub.Subscribe(sub, l, p, position)
		sub.Start()
		begun <- sub
	})
	select {
	case p.sub = <-begun:
		return nil
	case <-ctx.Done(): // the loop has ended
		return ctx.Err()
	}
}

// Backlogged is hub.Subscriber's.
func (p *probe) Backlogged() bool { return false }

// Gap is hub.Subscriber's: another server's probe, or its loss, is none of ours.
func (p *probe) Gap(string, int64, int64) {}

// Write is hub.Subscriber's.
func (p *probe) Write(batch *wire.Batch) {
	for _, f := range batch.Frames {
		e, err := wire.DecodeEvent(f.JSON())
		if err != nil || e.ID == nil {
			continue
		}
		select {
		case <-p.got:
		default:
		}
		p.got <- *e.ID
	}
}
