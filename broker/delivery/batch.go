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

// Kind is what a push goes to.
type Kind uint8

// The kinds of targets.
const (
	Channel Kind = iota
	Client
	User
)

// Push is one of several that came in one call, and what became of it.
type Push struct {
	Kind Kind
	Name string
	Payload

	Channel ChannelResult  // of a push to a channel
	Client  ClientResult   // of a push to a client
	Clients []ClientResult // of a push to a user
	Err     error          // with queue.ErrNotReplicated the result is valid

	chain *chain
}

// chain is what pushes to the same target have in common.
type chain struct {
	length      int
	unconfirmed bool // a replica was waited for in vain
}

// PushBatch runs pushes that came in one call: those to the same target one after the other, in their order;
// different targets side by side. All that are first to their targets are stored together, then all that are second, and so
// on: a goroutine for each target would wait by itself, on a stack that has to grow first.
//
// Behind a push that waited for a replica in vain nobody waits at the same target: a thousand that wait one after the
// other would take a thousand times as long. Those are stored, and not confirmed either.
func (p *Pusher) PushBatch(ctx context.Context, pushes []Push) {
	if len(pushes) == 1 {
		p.pushOne(ctx, &pushes[0])
		return
	}
	for _, wave := range waves(pushes) {
		for slice := range slices.Chunk(wave, chunkSize) {
			p.pushWave(ctx, slice)
		}
	}
}

// sliceSize is how many pushes of one call are on their way to the store at once. Other calls get
// their turn in between, and what is needed for them meanwhile is bounded, however large the call
// is.
const chunkSize = 1000

// one is PushBatch for a push that came alone.
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

func waves(pushes []Push) (waves [][]*Push) {
	chains := make([]chain, 0, len(pushes)) // at most
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

// byTurn puts the pushes that are n-th to their targets into wave n. All waves share one array:
// each with one of its own for as many as are left would take the square of their number, where all
// have one target.
func splitWaves(pushes []Push, chains []chain) [][]*Push {
	longest := 0
	for i := range chains {
		longest = max(longest, chains[i].length)
	}
	sizes := make([]int, longest+1)
	for i := range chains {
		sizes[chains[i].length]++ // that end there
		chains[i].length = 0      // counted once more below
	}
	waves, rest := make([][]*Push, longest), make([]*Push, len(pushes))
	for n, size := 0, len(chains); n < longest; n++ {
		waves[n], rest = rest[:0:size], rest[size:]
		size -= sizes[n+1]
	}
	for i := range pushes {
		c := pushes[i].chain
		waves[c.length] = append(waves[c.length], &pushes[i])
		c.length++
	}
	return waves
}

// targets finds the first push to the same target. It is a hash table of numbers, with open addressing: a map of a hundred
// takes 8 KB, this one 1.
type targets struct {
	pushes []Push
	seed   maphash.Seed
	slots  []int32 // a push's number and 1, or 0; their count is a power of two
}

func newTargets(pushes []Push) targets {
	return targets{pushes, maphash.MakeSeed(), make([]int32, 1<<bits.Len(uint(2*len(pushes))))}
}

// first is the number of that push, which is i where none before it has the target.
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

// wave runs pushes to different targets.
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
	start := time.Now()
	list := make([]queue.ChannelPush, len(pushes))
	for i, push := range pushes {
		list[i] = p.channelPush(push.Name, push.payload())
	}
	outcomes := p.opts.Queue.AppendChannels(ctx, list)
	took := time.Since(start)
	for i, push := range pushes {
		var err error
		push.Channel, err = p.afterChannelAppend(push.Name, push.Payload, outcomes[i].Value, outcomes[i].Err, took)
		push.finish(err)
	}
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

// toUsers asks for the clients of each user by itself.
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

// payload is what is stored: nobody waits for a replica behind one who did in vain.
func (push *Push) payload() Payload {
	p := push.Payload
	p.Durable = p.Durable && !push.chain.unconfirmed
	return p
}

func (push *Push) finish(err error) {
	if err == nil && push.Durable && push.chain.unconfirmed {
		err = queue.ErrNotReplicated
	}
	if push.Err = err; errors.Is(err, queue.ErrNotReplicated) {
		push.chain.unconfirmed = true
	}
}
