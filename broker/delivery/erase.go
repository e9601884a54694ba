package delivery

import (
	"context"
	"errors"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/queue"
)

// EraseResult is the result of Erase.
type EraseResult struct {
	At int64 // when the message was erased, Unix ms
	// Report is the id of the entry that reports the erasure. It is 0 if the message was erased
	// before, and the id is not known any more.
	Report    int64
	Servers   int // live servers with subscribers
	Duplicate bool
}

// Erase erases a message of a channel in the store, and notifies the servers with subscribers,
// which erase it in their memory and report it to the subscribers. The error is queue.ErrNoMessage
// if the channel has never had the message. After queue.ErrNotReplicated, the message is erased.
func (p *Pusher) Erase(ctx context.Context, channel string, id int64, durable bool) (EraseResult, error) {
	e := queue.Erase{Channel: channel, ID: id, Durable: durable}
	if p.opts.Keep != nil {
		e.Cap, e.TTL = p.opts.Keep(channel)
	}
	erased, err := p.opts.Queue.EraseMessage(ctx, e)
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		if !errors.Is(err, queue.ErrNoMessage) {
			p.recordFailure(queueKey{peer.Channel, channel}, err)
		}
		return EraseResult{}, err
	}
	return EraseResult{
		At: erased.At, Report: erased.ID, Duplicate: erased.Duplicate, Servers: p.announce(channel, erased.Appended, state.Message{}),
	}, err
}
