package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

// ErrNoMessage is returned for a message to erase if the channel has never had a message with the
// id, as far as the store knows. Loss markers and reports of erasures are no messages.
var ErrNoMessage = errors.New("queue: the channel has no such message")

// Erase names a message of a channel that is to be erased.
type Erase struct {
	Channel string
	ID      int64
	Durable bool // return only after a replica has the change, else ErrNotReplicated
	// Cap and TTL are as in ChannelPush: an entry is appended.
	Cap int
	TTL time.Duration
}

// Erased is the result of EraseMessage.
type Erased struct {
	// Appended is the entry that reports the erasure to readers. If the message was erased before,
	// Duplicate is true, and the ID is that of the first entry, or 0 if it is not known any more.
	Appended
	At    int64 // when the message was erased, Unix ms
	Found bool  // the channel holds what stays of the message. False if it was dropped before
}

// erasure is what EraseMessage does with a message that was read.
type erasure struct {
	old, left []byte // the data of the message, and what replaces it; nil to leave it
	entry     []byte // to append; nil if the message is erased already
	at        int64
	found     bool
}

// eraseKey is the idempotency key of an erasure. Keys of pushes have no space, and those of clients
// begin with u: or c:.
func (e *Erase) eraseKey() string { return "erase " + strconv.FormatInt(e.ID, 10) }

// plan returns what to do. page begins after the id before that of the message.
func (e *Erase) plan(page Page) (p erasure, err error) {
	if e.ID < 1 || e.ID > page.Last {
		return p, ErrNoMessage
	}
	p.at, p.entry = page.Clock, (&state.Entry{Erase: e.ID}).Encode()
	if len(page.Messages) == 0 || page.Messages[0].ID != e.ID {
		return p, nil // dropped; readers may still have it
	}
	p.found, p.old = true, page.Messages[0].Data
	if _, _, lost := Loss(p.old); lost {
		return p, ErrNoMessage
	}
	entry := new(state.Entry)
	if state.IsEntry(p.old) {
		if decoded, err := state.DecodeEntry(p.old); err == nil {
			entry = decoded
		}
	}
	switch {
	case entry.Erase != 0:
		return p, ErrNoMessage
	case entry.Erased != 0:
		return erasure{at: entry.Erased, found: true}, nil
	}
	p.left = entry.ErasedAt(page.Clock).Encode()
	return p, nil
}

// read is the read of the message.
func (e *Erase) read() ChannelRead {
	return ChannelRead{Channel: e.Channel, After: e.ID - 1, Limit: 1}
}

// EraseMessage erases a message of a channel: it replaces the message by one that has only the
// time, and the changes of fields if there are some, since a state is the fold of its log. It
// appends an entry that reports this to readers. A message that was dropped already is reported,
// too: readers may still show it. A repetition changes nothing; ten minutes after the erasure of a
// message that was dropped, it is reported again.
func (r *Redis) EraseMessage(ctx context.Context, e Erase) (Erased, error) {
	// A message changes at most twice: it is erased, and it is dropped.
	for range 3 {
		read := r.ReadChannels(ctx, []ChannelRead{e.read()})[0]
		if read.Err != nil {
			return Erased{}, read.Err
		}
		plan, err := e.plan(read.Value)
		if err == nil {
			var done bool
			var erased Erased
			if erased, done, err = r.erase(ctx, &e, plan); done {
				return erased, err
			}
		}
		if err != nil {
			return Erased{}, fmt.Errorf("erase message %d of channel %s: %w", e.ID, e.Channel, err)
		}
	}
	return Erased{}, fmt.Errorf("erase message %d of channel %s: it changes all the time", e.ID, e.Channel)
}

// erase runs the script. done is false if the message is not as it was read, or after an error. If
// no replica has the change in time, done is true, and the error is ErrNotReplicated.
func (r *Redis) erase(ctx context.Context, e *Erase, p erasure) (erased Erased, done bool, err error) {
	push := ChannelPush{Durable: e.Durable, Cap: e.Cap, TTL: e.TTL}
	keys := []string{
		r.keys.channel(e.Channel), r.keys.channelMeta(e.Channel), r.keys.channelServers(e.Channel),
		r.keys.channelKey(e.Channel, e.eraseKey()),
	}
	var old, left []byte
	if p.left != nil {
		old, left = memberOf(e.ID, p.old), memberOf(e.ID, p.left)
	}
	answer := r.pipe.EvalEach(ctx, redispipe.Target{
		Script: r.scriptsFor(push).erase.of(push), Keys: keys, Args: []any{old, left, p.entry},
	})[0]
	if answer.Err != nil && !errors.Is(answer.Err, ErrNotReplicated) {
		return Erased{}, false, answer.Err
	}
	text, _ := answer.Value.(string)
	reply := textReply{rest: text}
	id, prev, kind := reply.integer(), reply.integer(), reply.integer()
	r.clock.update(reply.integer())
	servers := reply.texts()
	if reply.err != nil {
		return Erased{}, false, reply.err
	}
	return p.result(Appended{ID: id, Prev: prev, Duplicate: kind == 1, Servers: servers}), kind != 2, answer.Err
}

// result returns the Erased for the entry that was appended, or was appended before.
func (p *erasure) result(a Appended) Erased {
	at := p.at
	if !a.Duplicate {
		a.Data = p.entry
	} else if !p.found {
		at = TimeOf(a.ID).UnixMilli()
	}
	return Erased{Appended: a, At: at, Found: p.found}
}

// memberOf returns a message as Redis holds it.
func memberOf(id int64, data []byte) []byte {
	return append(append(strconv.AppendInt(make([]byte, 0, 20+len(data)), id, 10), ':'), data...)
}

// EraseMessage is like [Redis.EraseMessage].
func (m *Memory) EraseMessage(_ context.Context, e Erase) (Erased, error) {
	if e.Durable {
		return Erased{}, fmt.Errorf("erase message %d of channel %s: %w", e.ID, e.Channel, ErrNoReplicas)
	}
	erased, err := m.erase(e)
	if err != nil {
		return Erased{}, fmt.Errorf("erase message %d of channel %s: %w", e.ID, e.Channel, err)
	}
	if m.servers != nil { // without m.mu: servers takes another lock
		erased.Servers = m.servers(e.Channel)
	}
	return erased, nil
}

func (m *Memory) erase(e Erase) (Erased, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.sweepLocked()
	plan, err := e.plan(m.readChannelLocked(e.read(), now))
	if err != nil {
		return Erased{}, err
	}
	key := keys{}.channelKey(e.Channel, e.eraseKey())
	known, repeated := m.pushed.get(key, now)
	if plan.left == nil && (repeated || plan.entry == nil) {
		a := Appended{Duplicate: true}
		if repeated {
			a.ID = known.id
		}
		return plan.result(a), nil
	}
	c, _ := m.channels.get(e.Channel, now)
	if plan.left != nil {
		c.replace(e.ID, plan)
	}
	a := Appended{ID: nextID(now, c.last), Prev: c.last}
	m.appendLocked(c, ChannelPush{Cap: e.Cap, TTL: e.TTL}, Message{ID: a.ID, Data: plan.entry}, now)
	m.channels.put(e.Channel, c, now)
	m.putKeyLocked(key, &keyEntry{id: a.ID}, now)
	return plan.result(a), nil
}

// replace replaces the data of a message that the channel holds.
func (c *memoryChannel) replace(id int64, p erasure) {
	i := slices.IndexFunc(c.messages, func(m Message) bool { return m.ID == id })
	c.messages[i].Data = p.left
	c.bytes += int64(len(p.left) - len(p.old))
}
