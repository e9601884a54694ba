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
	Client string
	Empty  bool // it expects that the list is empty
}

// ClientHead is the end of a client's queue.
type ClientHead struct {
	// ID is the last id that was assigned, 0 for none. It is -1 if the newest element is malformed:
	// Window removes it. After a failover it may be below ids of before.
	ID         int64
	Generation int64 // of the client's binding, 0 if the client is unknown
}

// ChannelHeads returns the end of each channel, so that a reader need not read channels in which
// nothing is new. If what the caller knows is right, a channel costs Redis one command, and an
// empty channel little more. In a Cluster each channel also costs a run of the script.
func (r *Redis) ChannelHeads(ctx context.Context, known []ChannelKnown) []Outcome[ChannelHead] {
	targets := make([]redispipe.Target, len(known))
	for i, k := range known {
		targets[i] = redispipe.Target{
			Script: r.channelHeads, Keys: []string{r.keys.channel(k.Channel), r.keys.channelMeta(k.Channel)},
			Args: []any{decimal(k.ID), bit(k.Empty)},
		}
	}
	return outcomes(r, ctx, targets, func(reply *textReply) (ChannelHead, int64) {
		return ChannelHead{ID: reply.integer(), Empty: reply.integer() == 1}, 0
	}, func(i int, err error) error { return fmt.Errorf("newest id of channel %s: %w", known[i].Channel, err) })
}

// ClientHeads returns the end of each client's queue, like ChannelHeads. A client whose list is not
// empty costs two commands.
func (r *Redis) ClientHeads(ctx context.Context, known []ClientKnown) []Outcome[ClientHead] {
	targets := make([]redispipe.Target, len(known))
	for i, k := range known {
		targets[i] = redispipe.Target{Script: r.clientHeads, Keys: r.clientKeys(k.Client), Args: []any{bit(k.Empty)}}
	}
	return outcomes(r, ctx, targets, func(reply *textReply) (ClientHead, int64) {
		return ClientHead{ID: reply.integer(), Generation: reply.integer()}, 0
	}, func(i int, err error) error { return fmt.Errorf("newest id of client %s: %w", known[i].Client, err) })
}

// bit formats a boolean for a script.
func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
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
