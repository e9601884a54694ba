package queue

import (
	"context"
	"fmt"

	"switchboard/internal/redispipe"
)

// ChannelKnown is what a caller of ChannelHeads knows of a channel.
type ChannelKnown struct {
	Channel string
	ID      int64 // the newest id that it has read
	Empty   bool  // it expects that the channel holds no message
}

// ChannelHead is the end of a channel.
type ChannelHead struct {
	// ID is the id of the newest message, also of another writer. If the channel holds no message, ID
	// is the last id that was assigned, 0 for none. After a failover it may be below ids of before.
	ID    int64
	Empty bool // the channel holds no message
}

// ClientKnown is what a caller of ClientHeads knows of a client's queue.
type ClientKnown struct {
	Client     string
	ID         int64 // the newest id that it has read
	Generation int64 // of the client's binding
	Empty      bool  // it expects that the list is empty
}

// ClientHead is the end of a client's queue.
type ClientHead struct {
	// ID is the last id that was assigned, 0 for none. It is -1 if the newest element is malformed:
	// Window removes it. After a failover it may be below ids of before.
	ID         int64
	Generation int64 // of the client's binding, 0 if the client is unknown
}

// asKnown is the reply of a script for a queue whose end is the one that the caller knows. It costs
// no memory, as a text does.
var asKnown any = int64(0)

// ChannelHeads returns the end of each channel, so that a reader need not read channels in which
// nothing is new. If what the caller knows is right, a channel costs Redis one command, and an
// empty channel little more. In a Cluster each channel also costs a run of the script. known must
// not change after the call.
func (r *Redis) ChannelHeads(ctx context.Context, known []ChannelKnown) []Outcome[ChannelHead] {
	args := make([]any, 0, 2*len(known))
	for i := range known {
		args = append(args, &known[i].ID, &known[i].Empty) // a value would be copied to the heap
	}
	keys := r.keys.pairs(channelKind, channelMetaKind, len(known), func(i int) string { return known[i].Channel })
	return heads(r, ctx, r.channelHeads, len(known), keys, args, func(i int, reply *textReply) (ChannelHead, error) {
		if reply == nil {
			return ChannelHead{known[i].ID, known[i].Empty}, nil
		}
		return ChannelHead{ID: reply.integer(), Empty: reply.integer() == 1}, reply.err
	}, func(i int, err error) error { return fmt.Errorf("newest id of channel %s: %w", known[i].Channel, err) })
}

// ClientHeads returns the end of each client's queue, like ChannelHeads. A client whose list is not
// empty costs two commands.
func (r *Redis) ClientHeads(ctx context.Context, known []ClientKnown) []Outcome[ClientHead] {
	args := make([]any, 0, 3*len(known))
	for i := range known {
		args = append(args, &known[i].ID, &known[i].Generation, &known[i].Empty)
	}
	keys := r.keys.pairs(recordKind, listKind, len(known), func(i int) string { return known[i].Client })
	return heads(r, ctx, r.clientHeads, len(known), keys, args, func(i int, reply *textReply) (ClientHead, error) {
		if reply == nil {
			return ClientHead{known[i].ID, known[i].Generation}, nil
		}
		return ClientHead{ID: reply.integer(), Generation: reply.integer()}, reply.err
	}, func(i int, err error) error { return fmt.Errorf("newest id of client %s: %w", known[i].Client, err) })
}

// heads runs a script for n queues. parse returns the end of queue i; a nil reply means that it is
// the one that the caller knows. wrap adds context to the error of queue i.
func heads[T any](r *Redis, ctx context.Context, script *redispipe.BatchScript, n int, keys []string, args []any,
	parse func(i int, reply *textReply) (T, error), wrap func(i int, err error) error) []Outcome[T] {
	out := make([]Outcome[T], n)
	var reply textReply // one for all queues
	r.pipe.EvalMany(ctx, script, n, keys, args, func(i int, answer redispipe.Answer) {
		value, err := out[i].Value, answer.Err
		switch {
		case err != nil:
		case answer.Value == asKnown:
			value, err = parse(i, nil)
		default:
			text, _ := answer.Value.(string)
			reply = textReply{rest: text}
			value, err = parse(i, &reply)
		}
		if err != nil {
			err = wrap(i, err)
		}
		out[i] = Outcome[T]{value, err}
	})
	return out
}

// ChannelHeads is like [Redis.ChannelHeads].
func (m *Memory) ChannelHeads(ctx context.Context, known []ChannelKnown) []Outcome[ChannelHead] {
	return forEach(ctx, known, m.channelHead)
}

func (m *Memory) channelHead(_ context.Context, known ChannelKnown) (ChannelHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, found := m.channels.get(known.Channel, m.sweepLocked())
	if !found {
		return ChannelHead{Empty: true}, nil
	}
	return ChannelHead{ID: c.last, Empty: len(c.messages) == 0}, nil
}

// ClientHeads is like [Redis.ClientHeads].
func (m *Memory) ClientHeads(ctx context.Context, known []ClientKnown) []Outcome[ClientHead] {
	return forEach(ctx, known, m.clientHead)
}

func (m *Memory) clientHead(_ context.Context, known ClientKnown) (ClientHead, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, _ := m.clientLocked(known.Client, m.sweepLocked())
	return ClientHead{ID: c.last, Generation: c.generation}, nil
}
