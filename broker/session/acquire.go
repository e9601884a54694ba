package session

import (
	"context"

	"switchboard/broker/hub"
	"switchboard/broker/presence"
	"switchboard/broker/snapshot"
	"switchboard/internal/wire"
)

// acquired is a held position in a channel and, if the client watches the presence, a held view of
// the channel's members. A pool's worker makes it, or the session's loop if the channel is ready.
// The loop uses or releases it.
type acquired struct {
	pos    hub.Position
	view   *presence.View   // or nil
	series *snapshot.Series // pages of the state; nil if the client needs none
}

// acquire prepares a subscription, in the pool. The view exists before the client receives
// `subscribed`, so that the client misses no join or leave after that.
func acquire(ctx context.Context, o *Options, req wire.Request, recentOnly bool) (a acquired, err error) {
	if recentOnly {
		a.pos, err = acquireRecent(ctx, o, req.Channel, *req.After)
	} else {
		a.pos, err = o.Hub.Acquire(ctx, req.Channel, req.After)
	}
	if err == nil && req.Presence && o.Presence != nil {
		a.view, err = o.Presence.Watch(ctx, req.Channel)
	}
	return a, err
}

// acquireRecent is hub.Acquire for a client that may not see messages older than resumeWindow. If
// the first message after the given id is older, or lost, the subscription begins at the present:
// its position is not a recovered one.
func acquireRecent(ctx context.Context, o *Options, channel string, after int64) (hub.Position, error) {
	page, err := o.Queue.ReadChannel(ctx, channel, after, 1)
	if err != nil {
		return hub.Position{}, err
	}
	if page.Complete && (len(page.Messages) == 0 || page.Messages[0].ID >= oldestRecent()) {
		return o.Hub.Acquire(ctx, channel, &after)
	}
	pos, err := o.Hub.Acquire(ctx, channel, nil)
	pos.Recovered = false
	return pos, err
}

// release undoes acquire for a subscription that does not begin.
func (a acquired) release(o *Options) {
	if a.pos.Channel != nil {
		o.Hub.Release(a.pos.Channel)
	}
	if a.view != nil {
		o.Presence.Release(a.view)
	}
}

// needsPages reports whether pages of the state follow the answer to a subscribe with state. They
// do not follow if the client has the state at its position and receives all messages since then.
func needsPages(req wire.Request, pos hub.Position) bool {
	return !req.Held || req.After == nil || !pos.Recovered
}

// sendPosition answers subscribe with the position of a new subscription.
func (s *Session) sendPosition(req wire.Request, pos hub.Position) {
	// The hub's string, so that codecs that keep the name share its memory.
	answer := wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: pos.Channel.Name, ID: &pos.ResumeID}
	if req.After != nil {
		answer.Recovered = &pos.Recovered
	}
	s.send(answer)
}

// beginWatch begins to watch the members of a channel in a view that is held. A nil view does
// nothing.
func (s *Session) beginWatch(channel string, view *presence.View) {
	switch {
	case view == nil:
	case s.state == closed: // by the write of the missed messages
		s.m.opts.Presence.Release(view)
	default:
		s.startWatch(channel, view.Subscribe(s.shard.loop, s))
	}
}

// sendSubscribed answers subscribe with the position that a subscription has reached.
func (s *Session) sendSubscribed(req wire.Request, sub *hub.Subscription) {
	id := sub.ResumeID()
	s.send(wire.Event{Type: wire.TypeSubscribed, Ref: req.Ref, Channel: req.Channel, ID: &id})
}
