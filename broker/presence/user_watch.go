package presence

import (
	"context"
	"slices"
	"time"

	"switchboard/registry"
)

// maxWatched is the most registrations that are made or removed in one call.
const maxWatched = 128

// register registers this server in the store as watching the user, if it is not registered. Its
// caller then reads the user: in this order, no change after the read is missed.
func (v *UserView) register(ctx context.Context) error {
	server := v.p.opts.ServerID()
	v.mu.Lock()
	registered := v.watched.Number != 0 && !v.mustWatch
	v.mustWatch = false
	v.mu.Unlock()
	if registered {
		return nil
	}
	o := v.p.opts.Store.WatchUsers(ctx, server, []string{v.user})[0]
	if o.Err != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.mustWatch = true
		return o.Err
	}
	v.registered(server, o.Number)
	return nil
}

// registered records a registration.
func (v *UserView) registered(server string, number int64) {
	v.p.mu.Lock()
	defer v.p.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	w := registry.UserWatch{User: v.user, Server: server, Number: number}
	if w.Number <= v.watched.Number {
		return // of two at the same time, the store has the other one
	}
	v.watched, v.renewedAt = w, time.Now()
	if v.p.users[v.user] != v { // released meanwhile
		v.p.unwatchLocked(w)
	}
}

// watchAgain makes the view register this server again, and read the store.
func (v *UserView) watchAgain() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.mustWatch = true
	v.markDirtyLocked()
}

// unwatchLocked has the next tick remove a registration.
func (p *Presence) unwatchLocked(w registry.UserWatch) {
	if w.Number != 0 {
		p.unwatched = append(p.unwatched, w)
	}
}

// tickUsers does the housekeeping of the views of users.
func (p *Presence) tickUsers() {
	var due []*UserView
	for _, v := range p.allUserViews() {
		if v.tick() {
			due = append(due, v)
		}
	}
	for views := range slices.Chunk(due, maxWatched) {
		p.opts.Pool.Go(func() { p.renewWatches(views) })
	}
	p.mu.Lock()
	unwatched := p.unwatched
	p.unwatched = nil
	p.mu.Unlock()
	for list := range slices.Chunk(unwatched, maxWatched) {
		p.opts.Pool.Go(func() { p.removeWatches(list) })
	}
}

// renewWatches renews the registrations of views. A view whose registration the store did not have
// has perhaps missed changes.
func (p *Presence) renewWatches(views []*UserView) {
	ctx, cancel := p.context()
	defer cancel()
	server, users := p.opts.ServerID(), make([]string, len(views))
	for i, v := range views {
		users[i] = v.user
	}
	for i, o := range p.opts.Store.WatchUsers(ctx, server, users) {
		if o.Err == nil {
			views[i].registered(server, o.Number)
		}
		if o.Err != nil || !o.Renewed {
			views[i].watchAgain()
		}
	}
}

// removeWatches removes registrations. After a failure they end by themselves, and cause needless
// hints until then.
func (p *Presence) removeWatches(list []registry.UserWatch) {
	ctx, cancel := p.context()
	defer cancel()
	if err := p.opts.Store.UnwatchUsers(ctx, list); err != nil {
		p.opts.Logger.Warn().Err(err).Msg("could not stop watching users; their registrations end later")
	}
}
