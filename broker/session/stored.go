package session

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"switchboard/broker/limit"
	"switchboard/queue"
)

// newSenders returns the rates of what each user, or each address, stores and makes the store read.
func newSenders(o Options) *limit.Senders {
	rates := limit.SenderRates{Bytes: limit.PerHour(o.Limits.UserStored), Read: limit.PerSecond(o.Limits.UserRead)}
	if n := o.Limits.NewChannels; n > 0 {
		rates.Channels = limit.New(float64(n)/60, max(n, o.Limits.Channels))
	}
	return limit.NewSenders(rates, o.Ledger)
}

// sender returns the sender whose rates and shares the client's messages count towards. It runs on
// the loop.
func (s *Session) sender() limit.Sender {
	if s.m.senders == nil && s.m.asks == nil {
		return limit.Sender{}
	}
	if user := s.user(); user != "" {
		return limit.SenderOf(user, netip.AddrPort{}, nil)
	}
	return limit.SenderOf("", s.conn.RemoteAddrPort(), s.m.opts.Limits.Proxies)
}

// Stored returns how much a user has used of what it may store.
func (m *Manager) Stored(ctx context.Context, user string) (limit.StoredUse, error) {
	return m.senders.Stored(ctx, limit.SenderOf(user, netip.AddrPort{}, nil))
}

// storeResult is the result of publishAs.
type storeResult struct {
	Published
	limit string // the limit that refused the publish, for Metrics.Refused; "" for none
}

// publisher is the sender of a publish, and whether its connection is subscribed to the channel.
// The subscribe has then counted as the new channel, and the first publish does not count again.
type publisher struct {
	limit.Sender
	subscribed bool
}

// publisherTo returns the sender of a publish to a channel. It runs on the loop.
func (s *Session) publisherTo(channel string) publisher {
	return publisher{s.sender(), s.subs().find(channel) != nil}
}

// publishAs stores a publish of that many bytes, unless the sender has stored too much or the
// publish would create a channel too many. It runs in the pool.
func (m *Manager) publishAs(ctx context.Context, by publisher, p Publication, bytes int) (storeResult, error) {
	reserved, wait := m.senders.Reserve(ctx, by.Sender, bytes, by.subscribed)
	if wait > 0 {
		return storeResult{limit: "user_stored"}, rateLimited(wait,
			"channel %s: more than %d bytes an hour stored by one user or address (limits.user_stored)", p.Channel, m.opts.Limits.UserStored)
	}
	p.ExistingOnly = reserved.ChannelWait > 0
	r, err := m.opts.Publish(ctx, p)
	stored := err == nil || errors.Is(err, queue.ErrNotReplicated)
	m.senders.Settle(reserved, stored || queue.OutcomeUnknown(err), stored && r.New)
	if errors.Is(err, queue.ErrNewChannel) {
		return storeResult{limit: newChannelsLimit}, newChannelError(&m.opts, p.Channel, reserved.ChannelWait)
	}
	return storeResult{Published: r}, err
}

// newChannelsLimit names the limit of newChannelError.
const newChannelsLimit = "new_channels"

// newChannelError returns the refusal of a message that would create one channel too many. wait is
// the time until the client may create a channel.
func newChannelError(o *Options, channel string, wait time.Duration) error {
	return rateLimited(wait, "channel %s: more than %d new channels a minute (limits.new_channels)", channel, o.Limits.NewChannels)
}

// countRefused counts the limit that refused a publish.
func (s *Session) countRefused(r storeResult) {
	if r.limit != "" {
		s.m.opts.Metrics.Refused(r.limit)
	}
}
