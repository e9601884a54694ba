package session

import (
	"context"
	"slices"
	"sync"

	"switchboard/broker/binding"
	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/broker/snapshot"
	"switchboard/internal/state"
	"switchboard/queue"
)

// stateUse holds the unwritten pages and the ownerships of a session. Most sessions have none and
// take no memory for it: the shard keeps the stateUses in a map. Only the session's loop uses it.
type stateUse struct {
	pages []*pageSeries
	owned []*ownership
}

// ownership exists while a client may own fields of a channel through one session. When the
// subscription or the session ends, a step in the store ends the ownership there. Until that step
// is stored, the ownership holds the channel, so that the server stays bound to it.
type ownership struct {
	session    *Session
	channel    string
	client     string
	generation int64
	release    func() // gives up the hold of the channel

	mu           sync.Mutex // guards the fields below
	updates      int        // updates under way that make the client an owner
	subscribes   int        // subscribes under way
	owns         bool       // the client may own fields
	uncertain    bool       // an update failed that the store may still execute
	unsubscribed bool       // the subscription has ended, and the step for that is not stored
	ended        bool       // the session has ended
	released     bool

	failed bool // in owners.failed; guarded by owners.mu
}

// beginUpdate notes an update that makes the client an owner. owners.endUpdate must follow.
func (o *ownership) beginUpdate() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.updates++
}

// beginSubscribe notes a subscribe with the state. owners.endSubscribe must follow.
func (o *ownership) beginSubscribe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subscribes++
	o.unsubscribed = o.unsubscribed && (o.owns || o.updates > 0) // otherwise an earlier subscription owned nothing
}

// unsubscribe notes that the subscription has ended. It does nothing if the client owns nothing.
func (o *ownership) unsubscribe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.unsubscribed = o.owns || o.updates+o.subscribes > 0
}

// isUnused reports whether the client owns nothing, and nothing is under way that may change that.
func (o *ownership) isUnused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.updates+o.subscribes == 0 && !o.owns && !o.unsubscribed
}

// isOwner reports whether the client may own fields.
func (o *ownership) isOwner() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owns
}

// takeDue returns the kind of the step that must be stored next. ok is false if there is none. It
// is also false during an update, because the store must receive the step after the update. takeDue
// forgets the end of a subscription that owned nothing.
func (o *ownership) takeDue() (kind queue.StepKind, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.updates > 0:
	case o.owns && o.unsubscribed:
		return queue.OwnerUnsubscribed, true
	case o.owns && o.ended:
		return queue.OwnerEnded, true
	case o.subscribes == 0: // a subscribe under way may still find that the client owns fields
		o.unsubscribed = false
	}
	return 0, false
}

// stored notes that a step was stored.
func (o *ownership) stored(kind queue.StepKind) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.unsubscribed = false; kind == queue.OwnerEnded {
		o.owns = false // the generation has ended: the store refuses what it still executes
	} else {
		o.owns = o.uncertain
	}
}

// releaseEnded gives up the channel if the session has ended and all is stored.
func (o *ownership) releaseEnded() {
	o.mu.Lock()
	release := o.ended && o.updates+o.subscribes == 0 && !o.owns && !o.released
	o.released = o.released || release
	o.mu.Unlock()
	if release {
		o.release()
	}
}

// step returns a step about the connection.
func (o *ownership) step(kind queue.StepKind, server string) queue.StateStep {
	return queue.StateStep{
		Channel: o.channel, Kind: kind,
		Conn: state.Connection{Client: o.client, Generation: o.generation, Server: server},
	}
}

// owners stores the steps of all ownerships. The loops and the pool's workers use it.
type owners struct {
	opts         *Options
	binder       *binding.Binder        // its locks serialize the steps of a client
	storeContext func() context.Context // Manager.storeContext

	mu     sync.Mutex // guards the field below
	failed []*ownership
}

// pageSeries is a series of pages that is not written completely. Its subscription is held: no
// message is written before the last page. Only the session's loop uses it.
type pageSeries struct {
	sub       *hub.Subscription
	requested bool               // the client asked for the pages; false after a gap
	making    bool               // the pool is making the pages
	failed    bool               // the pages were not made, and the next tick tries again
	pages     []*dialect.Message // pages that are made and not yet written
	series    *snapshot.Series   // of pages, held until all are written or dropped; nil until they are made
}

// stateUse returns the session's stateUse, or nil.
func (s *Session) stateUse() *stateUse { return s.shard.states[s] }

// ensureStateUse returns the session's stateUse. It creates one if there is none.
func (s *Session) ensureStateUse() *stateUse {
	u := s.stateUse()
	if u == nil {
		if s.shard.states == nil {
			s.shard.states = make(map[*Session]*stateUse)
		}
		u = new(stateUse)
		s.shard.states[s] = u
	}
	return u
}

// dropEmptyStateUse drops the session's stateUse if it is empty.
func (s *Session) dropEmptyStateUse() {
	if u := s.stateUse(); u != nil && len(u.pages)+len(u.owned) == 0 {
		delete(s.shard.states, s)
	}
	if len(s.shard.states) == 0 {
		s.shard.states = nil
	}
}

// ownership returns the session's ownership of fields of a channel, or nil.
func (s *Session) ownership(channel string) *ownership {
	if u := s.stateUse(); u != nil {
		if i := slices.IndexFunc(u.owned, func(o *ownership) bool { return o.channel == channel }); i >= 0 {
			return u.owned[i]
		}
	}
	return nil
}

// ensureOwnership returns the session's ownership of fields of a channel. It creates one if there
// is none.
func (s *Session) ensureOwnership(channel string) *ownership {
	if o := s.ownership(channel); o != nil {
		return o
	}
	o := &ownership{
		session: s, channel: channel, client: s.client, generation: s.generation, release: s.m.opts.Hub.Hold(channel),
	}
	u := s.ensureStateUse()
	u.owned = append(u.owned, o)
	return o
}

// dropUnusedOwnership drops an ownership if the client owns nothing.
func (s *Session) dropUnusedOwnership(o *ownership) {
	u := s.stateUse()
	if u == nil || !o.isUnused() {
		return
	}
	if i := slices.Index(u.owned, o); i >= 0 {
		u.owned = slices.Delete(u.owned, i, i+1)
		o.release()
		s.dropEmptyStateUse()
	}
}

func (s *Session) addPages(p *pageSeries) {
	u := s.ensureStateUse()
	u.pages = append(u.pages, p)
}

// isUnwritten reports whether the session still has to make or write pages of p.
func (s *Session) isUnwritten(p *pageSeries) bool {
	u := s.stateUse()
	return u != nil && slices.Contains(u.pages, p)
}

// dropPages drops the pages of a subscription that are not written.
func (s *Session) dropPages(sub *hub.Subscription) {
	if u := s.stateUse(); u != nil {
		u.pages = slices.DeleteFunc(u.pages, func(p *pageSeries) bool {
			if p.sub == sub {
				s.releasePages(p)
			}
			return p.sub == sub
		})
		s.dropEmptyStateUse()
	}
}

// releasePages undoes the hold of a series that is dropped.
func (s *Session) releasePages(p *pageSeries) {
	if p.series != nil {
		s.m.opts.Snapshots.Release(p.sub.Channel, p.series)
		p.series = nil
	}
}
