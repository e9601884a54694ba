package delivery

import (
	"context"
	"errors"
	"hash/maphash"
	"math/bits"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/queue"
)

// Kind is the kind of a push's target.
type Kind uint8

// Kinds of targets.
const (
	Channel Kind = iota
	Client
	User
)

// Push is one push of a batch, with its result.
type Push struct {
	Kind Kind
	Name string
	Payload

	Channel ChannelResult  // for a push to a channel
	Client  ClientResult   // for a push to a client
	Clients []ClientResult // for a push to a user
	Err     error          // if it is queue.ErrNotReplicated, the result is still valid

	chain *chain
}

// chain is the state that the pushes of a batch to the same target share.
type chain struct {
	length      int
	unconfirmed bool // no replica confirmed an earlier push in time
}

// PushBatch runs the pushes of one call. Pushes to the same target run in order; different targets
// run concurrently. The first push of every target is stored in one wave, then the second push of
// every target, and so on. One goroutine per target would cost more: each makes its own store calls
// and grows its own stack.
//
// After a durable push that no replica confirmed in time, later pushes to the same target do not
// wait for a replica: a thousand pushes would wait a thousand times as long. They are stored, and
// their error is queue.ErrNotReplicated too.
func (p *Pusher) PushBatch(ctx context.Context, pushes []Push) {
	if len(pushes) == 1 {
		p.pushOne(ctx, &pushes[0])
		return
	}
	for _, wave := range waves(pushes) {
		for chunk := range slices.Chunk(wave, chunkSize) {
			p.pushWave(ctx, chunk)
		}
	}
}

// chunkSize is how many pushes of one call are sent to the store at a time. Other calls run in
// between, and the memory of a large call is bounded.
const chunkSize = 1000

// pushOne is PushBatch for a single push.
func (p *Pusher) pushOne(ctx context.Context, push *Push) {
	switch push.Kind {
	case Channel:
		push.Channel, push.Err = p.ToChannel(ctx, push.Name, push.Payload)
	case Client:
		push.Client, push.Err = p.ToClient(ctx, push.Name, "", push.Payload)
		p.setClientAckDeadlines(ctx, []*Push{push})
	case User:
		push.Clients, push.Err = p.ToUser(ctx, push.Name, push.Payload)
	}
}

// waves splits the pushes into waves. A wave has at most one push for each target.
func waves(pushes []Push) (waves [][]*Push) {
	chains := make([]chain, 0, len(pushes)) // never grows: each push.chain points into it
	targets := newTargets(pushes)
	for i := range pushes {
		push := &pushes[i]
		if first := targets.first(i); first < i {
			push.chain = pushes[first].chain
		} else {
			chains = append(chains, chain{})
			push.chain = &chains[len(chains)-1]
		}
		push.chain.length++
	}
	if len(chains) == len(pushes) {
		return append(waves, pointers(pushes))
	}
	return splitWaves(pushes, chains)
}

func pointers(pushes []Push) []*Push {
	list := make([]*Push, len(pushes))
	for i := range pushes {
		list[i] = &pushes[i]
	}
	return list
}

// splitWaves puts the n-th push of each target into wave n. All waves share one array: if each wave
// allocated room for all remaining pushes, a batch with one target would need quadratic memory.
func splitWaves(pushes []Push, chains []chain) [][]*Push {
	longest := 0
	for i := range chains {
		longest = max(longest, chains[i].length)
	}
	ofLength := make([]int, longest+1) // number of chains by length
	for i := range chains {
		ofLength[chains[i].length]++
		chains[i].length = 0 // counted again below
	}
	waves, rest := make([][]*Push, longest), make([]*Push, len(pushes))
	for n, size := 0, len(chains); n < longest; n++ {
		waves[n], rest = rest[:0:size], rest[size:]
		size -= ofLength[n+1] // these chains end with wave n
	}
	for i := range pushes {
		c := pushes[i].chain
		waves[c.length] = append(waves[c.length], &pushes[i])
		c.length++
	}
	return waves
}

// targets is the set of the targets of a batch, each with the index of its first push. It is a hash
// table with open addressing. For a hundred pushes a map takes 8 KB, this table 1 KB.
type targets struct {
	pushes []Push
	seed   maphash.Seed
	slots  []int32 // index of a push plus 1, or 0 if empty; the length is a power of two
}

func newTargets(pushes []Push) targets {
	return targets{pushes, maphash.MakeSeed(), make([]int32, 1<<bits.Len(uint(2*len(pushes))))}
}

// first returns the index of the first push to the target of push i. It adds the target if it is
// new, and then returns i.
func (t *targets) first(i int) int {
	p, mask := &t.pushes[i], len(t.slots)-1
	for at := int(maphash.String(t.seed, p.Name)) & mask; ; at = (at + 1) & mask {
		slot := &t.slots[at]
		if *slot == 0 {
			*slot = int32(i + 1)
			return i
		}
		if other := &t.pushes[*slot-1]; other.Kind == p.Kind && other.Name == p.Name {
			return int(*slot - 1)
		}
	}
}

// pushWave runs pushes to different targets.
func (p *Pusher) pushWave(ctx context.Context, wave []*Push) {
	var channels, clients, users []*Push
	for _, push := range wave {
		switch push.Kind {
		case Channel:
			channels = append(channels, push)
		case Client:
			clients = append(clients, push)
		case User:
			users = append(users, push)
		}
	}
	var others sync.WaitGroup
	if len(users) > 0 {
		others.Go(func() { p.toUsers(ctx, users) })
	}
	if len(clients) > 0 && len(channels) > 0 {
		others.Go(func() { p.toClients(ctx, clients) })
	} else if len(clients) > 0 {
		p.toClients(ctx, clients)
	}
	if len(channels) > 0 {
		p.toChannels(ctx, channels)
	}
	others.Wait()
}

func (p *Pusher) toChannels(ctx context.Context, pushes []*Push) {
	pushes = p.trackAll(ctx, pushes)
	start := time.Now()
	list := make([]queue.ChannelPush, len(pushes))
	for i, push := range pushes {
		list[i] = p.channelPush(push.Name, push.payload())
	}
	outcomes := p.opts.Queue.AppendChannels(ctx, list)
	took := time.Since(start)
	changes := trackedChanges{Pusher: p}
	for i, push := range pushes {
		var err error
		push.Channel, err = p.afterChannelAppend(push.Name, push.Payload, outcomes[i].Value, outcomes[i].Err, took)
		push.finish(err)
		if push.Update != nil {
			changes.add(push.Name, outcomes[i].Value)
		}
	}
	changes.report(ctx)
}

func (p *Pusher) toClients(ctx context.Context, pushes []*Push) {
	start := time.Now()
	list := make([]queue.ClientPush, len(pushes))
	for i, push := range pushes {
		list[i] = clientPush(push.Name, "", push.payload())
	}
	outcomes := p.opts.Queue.AppendClients(ctx, list)
	took := time.Since(start)
	for i, push := range pushes {
		var err error
		push.Client, err = p.afterClientAppend(push.Name, push.Payload, outcomes[i].Value, outcomes[i].Err, took)
		push.finish(err)
	}
	p.setClientAckDeadlines(ctx, pushes)
}

// toUsers runs each push separately, because each needs the list of the user's clients.
func (p *Pusher) toUsers(ctx context.Context, pushes []*Push) {
	var group errgroup.Group
	group.SetLimit(256)
	for _, push := range pushes {
		group.Go(func() error {
			var err error
			push.Clients, err = p.ToUser(ctx, push.Name, push.payload())
			push.finish(err)
			return nil
		})
	}
	_ = group.Wait()
}

// payload returns the payload to store. It is not durable if an earlier push to the same target was
// not confirmed.
func (push *Push) payload() Payload {
	p := push.Payload
	p.Durable = p.Durable && !push.chain.unconfirmed
	return p
}

// finish sets the push's error.
func (push *Push) finish(err error) {
	if err == nil && push.Durable && push.chain.unconfirmed {
		err = queue.ErrNotReplicated
	}
	if push.Err = err; errors.Is(err, queue.ErrNotReplicated) {
		push.chain.unconfirmed = true
	}
}
