package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/broker/namespace"
	"switchboard/broker/snapshot"
	"switchboard/internal/meter"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// stateRequest asks for the pages of a subscription.
type stateRequest struct {
	channel   *hub.Channel // held by the caller
	from      int64        // the cursor of the subscription
	prefix    string
	pages     bool
	ownership *ownership // nil if the pages follow a gap
}

// prepareState makes the pages for a subscription, in the pool. If the client has asked for the
// state, prepareState first stores the end of an earlier subscription. It then reads the state,
// even if the client needs no pages: only the state says which fields the client owns. If the
// client owns some, prepareState stores that it is back. The pages count as read in the Meter of
// ctx, whether they were read from the store or not.
func (m *Manager) prepareState(ctx context.Context, r stateRequest) (*snapshot.Series, error) {
	owns := false
	if r.ownership != nil {
		defer func() { m.owners.endSubscribe(r.ownership, owns) }()
		if err := m.owners.store(ctx, r.ownership); err != nil {
			return nil, err
		}
	}
	series, err := m.opts.Snapshots.Pages(ctx, r.channel, r.from, r.prefix)
	if err != nil {
		return nil, err
	}
	if r.ownership != nil && m.opts.Snapshots.Owns(r.channel.Name, r.ownership.client) {
		owns = true // also after an error: the store may have executed the call
		err = m.owners.storeBack(ctx, r.ownership)
	}
	if !r.pages {
		series = nil
	}
	meter.Of(ctx).Raise(series.Bytes())
	return series, err
}

// tryPrepareState is prepareState without a call to the store. ok is false if a call is needed: the
// client may own fields, or the pages are not encoded yet.
func (s *Session) tryPrepareState(req wire.Request, pos hub.Position) (series *snapshot.Series, ok bool) {
	if s.ownership(req.Channel) != nil || s.m.opts.Snapshots.Owns(req.Channel, s.client) {
		return nil, false
	}
	if !needsPages(req, pos) {
		return nil, true
	}
	return s.m.opts.Snapshots.TryPages(pos.Channel, pos.Cursor, req.State.Prefix)
}

// stateSubscribe is a subscribe with state that needs the store.
type stateSubscribe struct {
	ownership *ownership
	filter    state.Filter
	release   func() // gives up the filter; nil if it is not reserved
}

// beginStateSubscribe notes a subscribe in the ownership of its channel. prepareStateSubscribe and
// endStateSubscribe must follow. It returns nil if the client does not ask for the state.
func (s *Session) beginStateSubscribe(req wire.Request) *stateSubscribe {
	if selectorOf(req) == nil {
		return nil
	}
	o := s.ensureOwnership(req.Channel)
	o.beginSubscribe()
	return &stateSubscribe{ownership: o, filter: s.permissions().filter(req.Channel, req.State.Prefix)}
}

// prepareStateSubscribe reserves the filter and calls prepareState. A subscribe that the channel
// refuses for its prefix must not store that the client is back. err is the error of the steps
// before it; if it is not nil, prepareStateSubscribe only ends the ownership's subscribe.
func (m *Manager) prepareStateSubscribe(ctx context.Context, req wire.Request, pos hub.Position, st *stateSubscribe, err error) (*snapshot.Series, error) {
	if err == nil {
		if st.release, err = pos.Channel.ReserveFilter(st.filter); err != nil {
			err = filterError(req.Channel, err)
		}
	}
	if err != nil {
		m.owners.endSubscribe(st.ownership, false)
		return nil, err
	}
	return m.prepareState(ctx, stateRequest{
		channel: pos.Channel, from: pos.Cursor, prefix: req.State.Prefix, pages: needsPages(req, pos), ownership: st.ownership,
	})
}

// endStateSubscribe gives up what a subscribe with state needed. A nil st does nothing.
func (s *Session) endStateSubscribe(st *stateSubscribe) {
	if st == nil {
		return
	}
	if st.release != nil {
		st.release()
	}
	s.dropUnusedOwnership(st.ownership)
}

// beginStateSubscription is beginSubscription for a subscription that sees the state.
func (s *Session) beginStateSubscription(req wire.Request, a acquired) {
	sub := s.unusedSubscription()
	filter := s.permissions().filter(req.Channel, req.State.Prefix)
	if err := s.m.opts.Hub.SubscribeState(sub, s.shard.loop, s, a.pos, filter); err != nil {
		s.forgetSubscription(sub)
		s.refuse(req.Ref, filterError(req.Channel, err))
		a.release(&s.m.opts)
		return
	}
	if s.sendPosition(req, a.pos); s.state != closed {
		s.joinPresence(sub)
		s.startPages(sub, a.series)
		s.checkBack(req.Channel)
	}
	s.beginWatch(req.Channel, a.view)
}

// filterError returns the error for a client whose filter was not accepted.
func filterError(channel string, err error) error {
	if errors.Is(err, hub.ErrFilters) {
		return wire.Errorf(wire.RateLimited, "channel %s: its subscribers use too many different prefixes", channel)
	}
	return fmt.Errorf("filter of channel %s: %w", channel, err)
}

// resubscribeState answers a subscribe with state to a channel that the connection is subscribed
// to. New pages follow, unless the client has the pages of the same prefix.
func (s *Session) resubscribeState(req wire.Request, sub *hub.Subscription) {
	before := sub.Filter()
	if req.Held && before.State && before.Prefix == req.State.Prefix {
		s.sendSubscribed(req, sub)
		return
	}
	if err := sub.SetFilter(s.permissions().filter(req.Channel, req.State.Prefix)); err != nil {
		s.refuse(req.Ref, filterError(req.Channel, err))
		return
	}
	if s.sendSubscribed(req, sub); s.state != closed {
		s.requestPages(sub, true)
	}
}

// recheckFilter applies new access rules to what a subscription sees. It returns the reason if the
// subscription sees the state, and the client may no longer read it.
func (s *Session) recheckFilter(current permissions, sub *hub.Subscription) error {
	before, channel := sub.Filter(), sub.Channel.Name
	if !before.State {
		return sub.SetFilter(current.authorFilter(channel))
	}
	if err := current.check(namespace.State, channel); err != nil {
		return err
	}
	after, wasHeld := current.filter(channel, before.Prefix), sub.Held()
	if after == before {
		return nil
	}
	if err := sub.SetFilter(after); err != nil {
		return filterError(channel, err)
	}
	if !wasHeld {
		sub.Start() // the pages do not depend on the presence right
	}
	return nil
}

// unsubscribeOwner ends the ownership of the client's fields of a channel, because the subscription
// was ended.
func (s *Session) unsubscribeOwner(channel string) {
	if o := s.ownership(channel); o != nil {
		o.unsubscribe()
		s.m.owners.storeLater(o)
	}
}

// maxOvertaken is how many series of pages in a row become useless until the connection is closed.
// A series is useless if the store no longer has the messages that follow it.
const maxOvertaken = 2

// startPages writes the pages of a held subscription, as the socket takes them. Then it starts the
// subscription. A nil series has no pages.
func (s *Session) startPages(sub *hub.Subscription, series *snapshot.Series) {
	if series == nil {
		sub.Start()
		return
	}
	p := &pageSeries{sub: sub, pages: series.Pages}
	switch s.writePages(p); {
	case s.state == closed:
	case len(p.pages) == 0:
		sub.Start()
	default:
		p.series = series
		s.m.opts.Snapshots.Hold(sub.Channel, series)
		s.addPages(p)
	}
}

// writePages writes pages until the socket is backed up.
func (s *Session) writePages(p *pageSeries) {
	for len(p.pages) > 0 && s.state != closed && !s.conn.Backlogged() {
		s.conn.Write(&dialect.Batch{Messages: p.pages[:1]})
		p.pages = p.pages[1:]
	}
	s.checkBacklog()
}

// continuePages writes more pages, because the socket is writable.
func (s *Session) continuePages() {
	u := s.stateUse()
	if u == nil {
		return
	}
	for _, p := range slices.Clone(u.pages) {
		if p.making || p.failed || !s.isUnwritten(p) { // a write may have ended the session
			continue
		}
		if s.writePages(p); len(p.pages) == 0 && s.state != closed {
			s.dropPages(p.sub)
			p.sub.Start()
		}
	}
}

// requestPages has the pool make new pages for a held subscription, and then writes them. After a
// failure, the next tick tries again. requested is pageSeries.requested.
func (s *Session) requestPages(sub *hub.Subscription, requested bool) {
	s.dropPages(sub)
	p := &pageSeries{sub: sub, requested: requested}
	s.addPages(p)
	s.makePages(p)
}

func (s *Session) makePages(p *pageSeries) {
	p.making, p.failed = true, false
	r := stateRequest{channel: p.sub.Channel, from: p.sub.Cursor(), prefix: p.sub.Filter().Prefix, pages: true}
	if p.requested {
		r.ownership = s.ensureOwnership(r.channel.Name)
		r.ownership.beginSubscribe()
	}
	by := s.sender()
	release := s.m.opts.Hub.Hold(r.channel.Name) // the subscription may end meanwhile
	s.m.opts.Pool.Go(func() {
		defer release()
		read := new(meter.Meter)
		series, err := s.m.prepareState(s.m.meteredContext(read), r)
		if r.ownership != nil { // the client has asked for the pages
			s.m.senders.TakeRead(by, read.Read())
		}
		s.shard.loop.Post(func() {
			if r.ownership != nil {
				s.dropUnusedOwnership(r.ownership)
			}
			switch p.making = false; {
			case !s.isUnwritten(p): // the subscription has ended, or newer pages replace these
			case err != nil:
				s.m.opts.Logger.Warn().Err(err).Msg("pages of a state are not made; the next tick tries again")
				p.failed = true
				s.shard.checkNextTick(s)
			default:
				if s.dropPages(p.sub); p.requested {
					s.chargeRead(read.Bytes(), 1)
				}
				s.corked(func() { s.startPages(p.sub, series) })
			}
		})
	})
}

// retryPages makes the pages for which makePages failed.
func (s *Session) retryPages() {
	if u := s.stateUse(); u != nil {
		for _, p := range u.pages {
			if p.failed {
				s.makePages(p)
			}
		}
	}
}

// Gap implements hub.Subscriber. A client that sees the state receives new pages after the gap.
func (s *Session) Gap(sub *hub.Subscription, after, id int64) (hold bool) {
	s.sendGap(sub.Channel.Name, after, id)
	if !sub.Filter().State || s.state == closed {
		return false
	}
	if sub.Overtaken() >= maxOvertaken {
		s.close(wire.CloseSlow, "the pages of the state were not read in time", 0)
		return false
	}
	s.requestPages(sub, false)
	return true
}
