package presence

import (
	"time"

	"switchboard/registry"
)

const (
	// maxChange is the most members of one channel in one store call. A call with several channels
	// has at most as many members in total.
	maxChange = 512
	// coalesceTime is the pause between two store calls, in which changes are collected for the
	// second one. The first change is written at once.
	coalesceTime = 10 * time.Millisecond
)

// pendingRoster is the roster of a channel on this server while it differs from the store's. One
// store call at a time is in progress; later changes go with the next one.
type pendingRoster struct {
	channel string
	changes []memberChange // in order; none if rewrite is set
	rewrite bool           // the store's roster is unknown: read it and write the difference
	equal   bool           // with rewrite: nothing is written if there is no difference
	aliases bool           // the aliases of the channel have changed, or must be read
	failed  bool           // the next tick tries again
	release func()         // releases the channel, which must stay bound until then
}

// compare makes the next write compare the roster with the store. Changes that are not written yet
// are part of the difference.
func (r *pendingRoster) compare() {
	if !r.rewrite {
		r.rewrite, r.equal, r.changes = true, len(r.changes) == 0, nil
	}
}

// memberChange is a join or a leave.
type memberChange struct {
	member registry.Member
	joined bool
}

// Join adds a client of this server to the channel.
func (p *Presence) Join(channel string, m registry.Member) {
	p.addChange(channel, memberChange{m, true})
}

// Leave removes a client of this server from the channel, and ends the value that it shows there. A
// newer connection of the same client stays. Leave also undoes JoinAs.
func (p *Presence) Leave(channel, client string, generation int64) {
	if p.leaveAlias(channel, client, generation) {
		return
	}
	p.addChange(channel, memberChange{registry.Member{Client: client, Generation: generation}, false})
	p.EndHere(channel, client, generation)
}

func (p *Presence) addChange(channel string, c memberChange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.pendingLocked(channel); !r.rewrite { // a rewrite includes the change anyway
		r.changes = append(r.changes, c)
	}
}

// pendingLocked returns the pending roster of the channel. If there is none, it creates and queues
// one.
func (p *Presence) pendingLocked(channel string) *pendingRoster {
	r := p.pending[channel]
	if r == nil {
		r = &pendingRoster{channel: channel, release: p.opts.Hold(channel)}
		p.pending[channel] = r
		p.enqueueLocked(r)
	}
	return r
}

// enqueueLocked queues a roster to be written in one batch with the others. When 15,000 clients
// came back at once, each into its own channel, one job and one call per roster took a tenth of the
// broker's CPU.
func (p *Presence) enqueueLocked(r *pendingRoster) {
	p.due = append(p.due, r)
	if !p.writing {
		p.writing = true
		p.opts.Pool.Go(p.writeBatch)
	}
}

// writeBatch writes some of the queued rosters.
func (p *Presence) writeBatch() {
	p.mu.Lock()
	batch := p.takeBatchLocked()
	p.mu.Unlock()

	if len(batch) > 0 {
		p.storeBatch(batch)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.finishBatchLocked(batch)
	if p.noCoalescing || len(p.due) > maxChange {
		p.continueLocked()
		return
	}
	p.coalesceTimer = time.AfterFunc(coalesceTime, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.coalesceTimer != nil { // StopCoalescing may have stopped the timer too late
			p.continueLocked()
		}
	})
}

// StopCoalescing ends the pauses between store calls. From then on, a call of Options.Pool.Wait
// returns only when all changes that were added before the call are written.
func (p *Presence) StopCoalescing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noCoalescing = true
	if p.coalesceTimer != nil {
		p.coalesceTimer.Stop()
		p.continueLocked()
	}
}

// continueLocked starts the next write job if rosters are queued.
func (p *Presence) continueLocked() {
	p.coalesceTimer = nil
	if p.writing = len(p.due) > 0; p.writing {
		p.opts.Pool.Go(p.writeBatch)
		return
	}
	p.due = nil
}

// rewriteRoster writes a roster whose stored state is unknown. It is read first, so it has a call
// of its own.
func (p *Presence) rewriteRoster(r *pendingRoster) {
	p.mu.Lock()
	equal := r.equal
	r.rewrite, r.equal, r.aliases, r.changes = false, false, false, nil
	p.mu.Unlock()
	batch := []*rosterWrite{{pending: r, rewrite: true, equal: equal}}
	p.storeBatch(batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finishBatchLocked(batch)
}

// takeBatchLocked takes rosters from the queue for one store call. It starts a job of its own for
// each roster that must be rewritten.
func (p *Presence) takeBatchLocked() (batch []*rosterWrite) {
	for members := 0; members < maxChange && len(p.due) > 0; {
		r := p.due[0]
		if len(batch) > 0 && members+len(r.changes) > maxChange {
			break // one with so many changes would delay the others
		}
		p.due[0] = nil
		p.due = p.due[1:]
		if r.rewrite {
			p.opts.Pool.Go(func() { p.rewriteRoster(r) })
			continue
		}
		batch = append(batch, &rosterWrite{pending: r, changes: r.changes})
		members += max(len(r.changes), 1) // how many aliases have changed is not known yet
		r.changes, r.aliases = nil, false
	}
	return batch
}

// finishBatchLocked handles the result of a store call.
func (p *Presence) finishBatchLocked(batch []*rosterWrite) {
	var failed error
	for _, b := range batch {
		switch r := b.pending; {
		case b.err != nil:
			failed = b.err
			r.rewrite, r.equal, r.failed, r.changes = true, false, true, nil // some of it may have been written
			p.opts.Uncertain(r.channel)
		case len(r.changes) > 0 || r.rewrite || r.aliases:
			p.enqueueLocked(r)
		default:
			delete(p.pending, r.channel)
			r.release()
		}
	}
	if failed != nil {
		p.opts.Logger.Warn().Err(failed).Msg("presence not written; the next tick tries again")
	}
}

// retry queues the rosters again whose write failed.
func (p *Presence) retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.pending {
		if r.failed {
			r.failed = false
			p.enqueueLocked(r)
		}
	}
}

// presenceChange converts changes to the form of the store: for each client, the last change of its
// newest connection.
func presenceChange(changes []memberChange) (c registry.PresenceChange) {
	if len(changes) > 1 {
		changes = newestPerClient(changes)
	}
	for _, ch := range changes {
		if ch.joined {
			c.Join = append(c.Join, ch.member)
		} else {
			c.Leave = append(c.Leave, ch.member)
		}
	}
	return c
}

// newestPerClient keeps, for each client, the last change of its newest connection.
func newestPerClient(changes []memberChange) []memberChange {
	at := make(map[string]int, len(changes)) // by client
	kept := changes[:0]
	for _, ch := range changes {
		i, known := at[ch.member.Client]
		switch {
		case !known:
			at[ch.member.Client] = len(kept)
			kept = append(kept, ch)
		case kept[i].member.Generation <= ch.member.Generation:
			kept[i] = ch
		}
	}
	return kept
}
