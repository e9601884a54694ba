package session

import (
	"context"

	"switchboard/registry"
)

// ListsChanged has the sessions of clients read the lists of the subscriptions that the backend has
// made, and apply them. The store must have the lists already: a client that is being connected
// reads them there. It returns how many sessions have applied them, and what they refused. complete
// is false if ctx ended first.
func (m *Manager) ListsChanged(ctx context.Context, clients []string) (applied int, refused []RefusedSub, complete bool) {
	results, asked := make(chan listApplied, len(clients)), 0
	for _, client := range clients {
		m.binder.NoteLists(client)
		if s := m.clients.get(client); s != nil {
			asked++
			s.shard.loop.Post(func() { s.readLists(&listWait{done: results}) })
		}
	}
	for range asked {
		select {
		case r := <-results:
			if !r.gone {
				applied++
			}
			refused = append(refused, r.refused...)
		case <-ctx.Done():
			return applied, refused, false
		}
	}
	return applied, refused, true
}

// readLists reads the session's lists in the pool. wait, if not nil, ends after they are applied.
func (s *Session) readLists(wait *listWait) {
	if s.state != open {
		if wait != nil {
			wait.done <- listApplied{gone: true}
		}
		return
	}
	e := s.ensureExtra()
	if e.profile == nil {
		e.profile = new(profile)
	}
	if e.profile.reading == nil {
		e.profile.reading = new(listRead)
	}
	r := e.profile.reading
	if wait != nil {
		r.waiting = append(r.waiting, wait)
	}
	if r.running {
		r.again = true
		return
	}
	r.running, r.again, r.failed = true, false, false
	subscriber := s.subscriber()
	s.m.opts.Pool.Go(func() {
		o := s.m.opts.Registry.Subscriptions(s.m.storeContext(), []registry.Subscriber{subscriber})[0]
		s.shard.loop.Post(func() { s.listsRead(o) })
	})
}

// listsRead handles the result of readLists.
func (s *Session) listsRead(o registry.SubscriptionsOutcome) {
	if s.state != open {
		return
	}
	r := s.listRead()
	r.running = false
	switch {
	case o.Err != nil:
		s.m.opts.Logger.Warn().Err(o.Err).Msg("the subscriptions of the backend were not read; the next tick tries again")
		r.failed = true
		s.shard.checkNextTick(s)
	case r.again:
		s.readLists(nil)
	default:
		s.corked(func() { s.applyLists(o.Subscriptions) })
	}
}

// applyLists applies lists that were read. Lists that are older than those of the session are
// ignored.
func (s *Session) applyLists(lists registry.Subscriptions) {
	var claim claimedSubs
	b := s.backendSubs()
	if b != nil {
		claim, lists = b.claim, b.lists.Merge(lists)
	}
	next, ended := nextBackendSubs(b, claim, lists, 0)
	e := s.ensureExtra()
	if e.profile == nil {
		e.profile = new(profile)
	}
	e.profile.backend = next
	for _, channel := range ended {
		if s.endFor(channel, backendUnsubscribed(channel)); s.state != open {
			return
		}
	}
	s.recheck()
	s.subscribeDue()
	s.dropEmptyProfile()
}
