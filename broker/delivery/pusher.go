package delivery

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/queue"
	"switchboard/registry"
)

// maxInline is the most bytes of a payload in a hint. Each owner reads a larger one from the store.
const maxInline = 8 << 10

// Registry is the part of the registry that a Pusher calls.
type Registry interface {
	User(ctx context.Context, user string) ([]registry.Binding, error)
	ForgetUser(ctx context.Context, user, client string, generation int64) error
	ChannelServers(ctx context.Context, channel string) ([]string, error)
}

// Queue is the part of the queue that a Pusher calls.
type Queue interface {
	AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error)
	AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error)
	AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended]
	AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended]
	EraseMessage(ctx context.Context, e queue.Erase) (queue.Erased, error)
	ConfirmChannel(ctx context.Context, channel string, id int64) (*queue.Marker, error)
	ConfirmClient(ctx context.Context, client string, id int64) (*queue.Marker, error)
	Client(ctx context.Context, client string) (queue.Client, bool, error)
}

// States is the part of the queue that StepStates calls.
type States interface {
	StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended]
}

// Options configures a Pusher. Required are all fields but Epoch, Keep, SetAckDeadline, Appended,
// States and FieldEnds.
type Options struct {
	Registry Registry
	Queue    Queue
	Self     func() string            // this server's id
	Live     func(server string) bool // reports whether a server holds a lease, as far as this server knows
	// Local delivers a hint on this server. decoded is the message in h.Data if that is an entry that
	// this server has encoded, so that it need not decode it. Otherwise its Data is nil.
	Local  func(h peer.Hint, decoded state.Message)
	Remote func(server string, h peer.Hint)   // sends a hint to another server; it may be lost
	Stored func(kind string, d time.Duration) // called when a message was stored; kind is "channel" or "client"
	Epoch  func(name string) uint64           // of a channel or client: changes when the store may have lost its messages; nil for a store that cannot lose any
	Lost   func()                             // called when the store lost messages although Epoch did not change
	// Unremembered is called for each message that Confirm will not ask for, because there are too
	// many queues. Nil means no call.
	Unremembered func()
	// MissHints is called when messages may have been stored without a hint, and it is not known in
	// which queues.
	MissHints func()
	// Keep returns a channel's limits: how many messages are kept, and how long after the last one.
	// Zeros mean the defaults. A nil Keep means the defaults for all channels.
	Keep func(channel string) (messages int, age time.Duration)
	// SetAckDeadline makes the backend receive a webhook if a message is not acknowledged in time.
	// Repeated calls for the same messages count once. Nil means that no push may set NotifyAfter.
	SetAckDeadline func(ctx context.Context, d AckDeadline) error
	// Appended is called with the id of each message of a channel that was stored. Nil means no call.
	Appended func(channel string, id int64)
	// States changes states without a push. Nil means that no caller uses StepStates.
	States States
	// FieldEnds makes the backend receive events about the fields of the channels for which
	// TracksFields returns true. Nil means no events.
	FieldEnds    FieldEnds
	TracksFields func(channel string) bool
}

// Pusher stores messages and notifies the owners of their channels or clients.
type Pusher struct {
	opts Options
	log  *storedLog
}

// New returns a Pusher.
func New(opts Options) *Pusher { return &Pusher{opts, newStoredLog(opts.Epoch, opts.Lost)} }

// Payload is the content and the options of a push to any target.
type Payload struct {
	Data []byte        // compact JSON
	TTL  time.Duration // shortest time that a client's queue keeps the message. Zero means the default
	Key  string        // idempotency key, or empty
	// Message is a message of a client to a channel, in place of Data and Exclude, and Entry is the
	// same as the store keeps it. The Data of Message is nil if there is none.
	Message state.Message
	Entry   []byte
	// NotifyAfter is the acknowledgement deadline. If the message is not acknowledged in this time,
	// the backend receives a webhook. Zero means no deadline.
	NotifyAfter time.Duration
	// First, for a push to a user, lets the first acknowledgement remove the message from the queues
	// of the user's other clients.
	First bool
	// Exclude is the id of a client that does not receive the message, though it subscribes to the
	// channel or is one of the user's. Zero means none. An Update has an Exclude of its own.
	Exclude string
	// Durable makes the push wait for a replica. If none confirms in time, the message is stored and
	// its owners receive hints, but the error is queue.ErrNotReplicated.
	Durable bool
	// ExistingOnly, for a push to a channel, does not create the channel. If the channel does not
	// exist, the error is queue.ErrNewChannel.
	ExistingOnly bool
	// Update, for a push to a channel, changes the channel's state. Data is then not used. If the
	// update is refused, the error is a *state.Refusal.
	Update *state.Update
	// Script makes the Update by a script of another package. Nil for none.
	Script *queue.ScriptCall
}

// ChannelResult is the result of a push to a channel.
type ChannelResult struct {
	ID        int64
	Servers   int // live servers with subscribers
	Duplicate bool
	New       bool // the push created the channel
	// Numbers are the results of the additions of Payload.Update, by field.
	Numbers map[string]int64
	// Clock is the store's clock at the update, Unix ms, see queue.Appended.
	Clock int64
	// Reply is that of Payload.Script. If the script changed no field, the ID is 0.
	Reply string
}

// ToChannel stores payload in the channel and notifies the servers with subscribers.
func (p *Pusher) ToChannel(ctx context.Context, channel string, payload Payload) (ChannelResult, error) {
	if err := p.track(ctx, channel, payload); err != nil {
		return ChannelResult{}, err
	}
	start := time.Now()
	a, err := p.opts.Queue.AppendChannel(ctx, p.channelPush(channel, payload))
	r, err := p.afterChannelAppend(channel, payload, a, err, time.Since(start))
	if payload.Update != nil {
		changes := trackedChanges{Pusher: p}
		changes.add(channel, a)
		changes.report(ctx)
	}
	return r, err
}

// message returns the message of a push to a channel that is stored as an entry, because it has
// more than Data. Its Data is nil if the data is stored alone, or if there is an Update.
func (p *Payload) message() state.Message {
	if p.Exclude == "" || p.Update != nil {
		return p.Message
	}
	return state.Message{Exclude: p.Exclude, Data: p.Data}
}

func (p *Pusher) channelPush(channel string, payload Payload) queue.ChannelPush {
	data := payload.Data
	if payload.Entry != nil {
		data = payload.Entry
	} else if m := payload.message(); m.Data != nil {
		data = m.Encode()
	}
	push := queue.ChannelPush{
		Channel: channel, Data: data, Key: payload.Key, Durable: payload.Durable, ExistingOnly: payload.ExistingOnly,
		Update: payload.Update, Script: payload.Script,
	}
	if p.opts.Keep != nil {
		push.Cap, push.TTL = p.opts.Keep(channel)
	}
	return push
}

// afterChannelAppend handles the store's answer and notifies the owners. took is the duration of
// the store call.
func (p *Pusher) afterChannelAppend(channel string, payload Payload, a queue.Appended, err error, took time.Duration) (ChannelResult, error) {
	if _, refused := errors.AsType[*state.Refusal](err); refused {
		p.announce(channel, a, state.Message{}) // the fields that had expired
		return ChannelResult{}, err
	}
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		p.recordFailure(queueKey{peer.Channel, channel}, err)
		return ChannelResult{}, err
	}
	p.opts.Stored("channel", took)
	return ChannelResult{
		ID: a.ID, Duplicate: a.Duplicate, New: a.ID != 0 && a.Prev == 0 && !a.Duplicate, Numbers: a.Numbers, Reply: a.Reply, Clock: a.Clock,
		Servers: p.announce(channel, a, payload.message()),
	}, err
}

// announce records the message of a channel that was stored, if there is one, and notifies the
// owners of the channel. It returns how many of them are live. decoded is the message in a.Data, if
// it is known, see Options.Local.
func (p *Pusher) announce(channel string, a queue.Appended, decoded state.Message) (live int) {
	if a.ID == 0 {
		return 0
	}
	p.recordStored(queueKey{peer.Channel, channel}, a.ID, a.Prev, a.Duplicate)
	if p.opts.Appended != nil {
		p.opts.Appended(channel, a.ID)
	}
	hint := peer.Hint{Kind: peer.Channel, Name: channel, ID: a.ID, Prev: a.Prev, Data: inlineData(a.Data, a.Duplicate)}
	switch {
	case hint.Data == nil:
		decoded = state.Message{}
	case state.IsEntry(hint.Data):
		hint.Kind = peer.ChannelEntry
	}
	for _, server := range a.Servers {
		if p.opts.Live(server) {
			live++
		}
		p.notify(server, hint, decoded)
	}
	return live
}

// inlineData returns the data for the hint, or nil if the owner must read it from the store. A
// duplicate also causes a hint, because the server that stored the message may have died before it
// sent one. The predecessor of a duplicate is not known, so the owner must read.
func inlineData(data []byte, duplicate bool) []byte {
	if duplicate || len(data) > maxInline {
		return nil
	}
	return data
}

// notify delivers a hint on this server or sends it to another one.
func (p *Pusher) notify(server string, h peer.Hint, decoded state.Message) {
	if server == p.opts.Self() {
		p.opts.Local(h, decoded)
	} else {
		p.opts.Remote(server, h)
	}
}

// ClientResult is the result of a push to one client.
type ClientResult struct {
	Client    string
	ID        int64
	Online    bool
	Duplicate bool
}

// ToClient stores payload in the client's queue and notifies its owner. If user is not empty, the
// client must be that user's. ToClient ignores payload.NotifyAfter; PushBatch does not.
func (p *Pusher) ToClient(ctx context.Context, client, user string, payload Payload) (ClientResult, error) {
	start := time.Now()
	a, err := p.opts.Queue.AppendClient(ctx, clientPush(client, user, payload))
	return p.afterClientAppend(client, payload, a, err, time.Since(start))
}

func clientPush(client, user string, p Payload) queue.ClientPush {
	return queue.ClientPush{Client: client, User: user, Data: p.Data, TTL: p.TTL, Key: p.Key, Durable: p.Durable}
}

// afterClientAppend handles the store's answer and notifies the owner. took is the duration of the
// store call.
func (p *Pusher) afterClientAppend(client string, payload Payload, a queue.ClientAppended, err error, took time.Duration) (ClientResult, error) {
	if err != nil && !errors.Is(err, queue.ErrNotReplicated) {
		p.recordFailure(queueKey{peer.Client, client}, err)
		return ClientResult{}, err
	}
	p.recordStored(queueKey{peer.Client, client}, a.ID, a.Prev, a.Duplicate)
	p.opts.Stored("client", took)
	if a.Server != "" {
		p.notify(a.Server, peer.Hint{Kind: peer.Client, Name: client, ID: a.ID, Prev: a.Prev, Data: inlineData(payload.Data, a.Duplicate)}, state.Message{})
	}
	return ClientResult{
		Client: client, ID: a.ID, Duplicate: a.Duplicate,
		Online: a.Server != "" && p.opts.Live(a.Server),
	}, err
}

// ToUser stores payload for every known client of the user, in shared round trips. It removes a
// client that no longer belongs to the user from the user's list.
func (p *Pusher) ToUser(ctx context.Context, user string, payload Payload) ([]ClientResult, error) {
	bindings, err := p.opts.Registry.User(ctx, user)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	bindings = slices.DeleteFunc(bindings, func(b registry.Binding) bool { return b.Client == payload.Exclude })
	pushes := make([]queue.ClientPush, len(bindings))
	ackGroup := ""
	// A single message needs no group, unless a repeated push with this key may find more clients.
	if payload.First && (len(bindings) > 1 || payload.Key != "") {
		ackGroup = ackGroupName(user, payload.Key)
	}
	for i, b := range bindings {
		pushes[i] = clientPush(b.Client, user, payload)
		pushes[i].AckGroup = ackGroup
	}
	results := make([]ClientResult, 0, len(bindings))
	var failed, unconfirmed error // failed takes precedence: a message may be missing, or a wrong client still listed
	for i, o := range p.opts.Queue.AppendClients(ctx, pushes) {
		b := bindings[i]
		r, err := p.afterClientAppend(b.Client, payload, o.Value, o.Err, time.Since(start))
		switch {
		case errors.Is(err, queue.ErrUnknownClient):
			failed = cmp.Or(failed, p.opts.Registry.ForgetUser(ctx, user, b.Client, b.Generation))
			continue
		case errors.Is(err, queue.ErrNotReplicated):
			unconfirmed = cmp.Or(unconfirmed, err)
		case err != nil:
			failed = cmp.Or(failed, err)
		}
		results = append(results, r)
	}
	if failed != nil {
		return nil, failed
	}
	if err := p.setAckDeadline(ctx, user, results, payload); err != nil {
		return results, err
	}
	return results, unconfirmed
}

// Notify sends a hint to the owners of the channels and clients, so that they read the store. It is
// for messages that may have been stored without a hint.
func (p *Pusher) Notify(ctx context.Context, channels, clients []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(256)
	for _, channel := range channels {
		group.Go(func() error {
			servers, err := p.opts.Registry.ChannelServers(ctx, channel)
			for _, server := range servers {
				p.notify(server, peer.Hint{Kind: peer.Channel, Name: channel, ID: math.MaxInt64}, state.Message{})
			}
			return err
		})
	}
	for _, client := range clients {
		group.Go(func() error {
			c, _, err := p.opts.Queue.Client(ctx, client)
			if c.Server != "" {
				p.notify(c.Server, peer.Hint{Kind: peer.Client, Name: client, ID: math.MaxInt64}, state.Message{})
			}
			return err
		})
	}
	return group.Wait()
}
