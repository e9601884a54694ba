package session

import (
	"context"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// listRead is the reading of a session's lists of subscriptions after a call of the backend. Only
// the session's loop uses it.
type listRead struct {
	running bool
	again   bool // they have changed while they were read
	failed  bool // the next tick tries again
	waiting []*listWait
}

// listWait is a call of the backend that waits until a session has applied its lists.
type listWait struct {
	refused []RefusedSub
	done    chan<- listApplied // with room for the result
}

// listApplied is the result of a listWait.
type listApplied struct {
	refused []RefusedSub
	gone    bool // the session has ended
}

// RefusedSub is a channel to which a client could not be subscribed for the backend.
type RefusedSub struct {
	Client  string         `json:"client"`
	Channel string         `json:"channel"`
	Code    wire.ErrorCode `json:"code"`
	Message string         `json:"message"`
}

// ListsChanged has the sessions of clients read the lists of the subscriptions that the backend has
// made, and apply them. The store must have the lists already: a client that is being connected
// reads them there. It returns how many sessions have applied them, and what they refused. complete
// is false if ctx ended first.
func (m *Manager) ListsChanged(ctx context.Context, clients []string) (applied int, refused []RefusedSub, complete bool) {
	results, asked := make(chan listApplied, len(clients)), 0
	for _, client := range clients {
		if s := m.clients.getForLists(client); s != nil {
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

// listRead returns the reading of the session's lists, or nil.
func (s *Session) listRead() *listRead {
	if p := s.profile(); p != nil {
		return p.reading
	}
	return nil
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

// subscriber returns the client, with the lists that the session has.
func (s *Session) subscriber() registry.Subscriber {
	who := registry.Subscriber{User: s.user(), Client: s.client}
	if b := s.backendSubs(); b != nil {
		who.Held = b.lists
	}
	return who
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

// noteRefused notes for the calls that wait that the backend could not subscribe the client.
func (s *Session) noteRefused(channel string, why *wire.Error) {
	if r := s.listRead(); r != nil {
		for _, w := range r.waiting {
			w.refused = append(w.refused, RefusedSub{s.client, channel, why.Code, why.Message})
		}
	}
}

// endListWaits answers the calls of the backend that wait for the session, if all subscriptions
// have begun, or if the session has ended.
func (s *Session) endListWaits(gone bool) {
	r := s.listRead()
	if r == nil || !gone && (r.running || r.failed) {
		return
	}
	if b := s.backendSubs(); !gone && b != nil && len(b.due)+len(b.retry) > 0 {
		return
	}
	for _, w := range r.waiting {
		w.done <- listApplied{w.refused, gone}
	}
	s.extra.profile.reading = nil
}

// readLists reads the lists of clients that were bound, if they may have some. It sets the errors
// of those for which that fails.
func (b *binder) readLists(ctx context.Context, claims []queue.Claim, out []bindResult) {
	var list []registry.Subscriber
	var at []int // the index in out of each entry of list
	for i := range claims {
		if c := &claims[i]; out[i].err == nil && out[i].bound.Subscribed {
			if list == nil { // a store in memory has all clients here
				list, at = make([]registry.Subscriber, 0, len(claims)-i), make([]int, 0, len(claims)-i)
			}
			list, at = append(list, registry.Subscriber{User: c.User, Client: c.Client}), append(at, i)
		}
	}
	if len(list) == 0 {
		return
	}
	for k, o := range b.opts.Registry.Subscriptions(ctx, list) {
		out[at[k]].lists, out[at[k]].err = o.Subscriptions, o.Err
	}
}

// renewLists reads the lists of clients whose bindings were renewed, if they may have some. users
// has the bindings of those with a user.
func (b *binder) renewLists(ctx context.Context, jobs []*renewJob, users []registry.UserBinding, withUser []*renewJob) {
	for i, u := range users {
		withUser[i].listed = u.Subscribed
	}
	var list []registry.Subscriber
	var read []*renewJob
	for _, j := range jobs {
		if j.err == nil && (j.listed || !j.subscriber.Held.Empty()) {
			list, read = append(list, j.subscriber), append(read, j)
		}
	}
	if len(list) == 0 {
		return
	}
	for i, o := range b.opts.Registry.Subscriptions(ctx, list) {
		read[i].lists, read[i].err = o.Subscriptions, o.Err
	}
}
