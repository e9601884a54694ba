package presence

import (
	"time"

	"switchboard/registry"
)

const (
	// maxChange is the most members of one channel in one call to the store, and how many a call with many channels
	// gathers.
	maxChange = 512
	// gatherTime lies between two calls, so that the second has something to gather: the first of many is written at
	// once, and nobody needs to hear of the others sooner than that.
	coalesceTime = 10 * time.Millisecond
)

// writing is the roster of one channel on this server while it differs from the store's. One call at a time is
// under way, and what comes meanwhile goes with the next.
type pendingRoster struct {
	channel string
	changes []memberChange // as they came; none while whole is set
	rewrite bool           // the store may have anything
	failed  bool           // the next tick tries again
	release func()         // of the channel, which must stay bound meanwhile
}

// change is what has become of a client.
type memberChange struct {
	member registry.Member
	joined bool
}

// Join says that a client of this server has come into the channel.
func (p *Presence) Join(channel string, m registry.Member) {
	p.addChange(channel, memberChange{m, true})
}

// Leave says that it has gone. A younger connection of the client stays.
func (p *Presence) Leave(channel, client string, generation int64) {
	p.addChange(channel, memberChange{registry.Member{Client: client, Generation: generation}, false})
}

func (p *Presence) addChange(channel string, c memberChange) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.pendingLocked(channel); !w.rewrite { // else it is among those that are here, or is not
		w.changes = append(w.changes, c)
	}
}

func (p *Presence) pendingLocked(channel string) *pendingRoster {
	w := p.pending[channel]
	if w == nil {
		w = &pendingRoster{channel: channel, release: p.opts.Hold(channel)}
		p.pending[channel] = w
		p.enqueueLocked(w)
	}
	return w
}

// dueLocked has a roster written, with those of other channels that are due by then: of 15,000 clients that come back
// at once, each into its own channel, a job and a call for each roster were a tenth of the broker's CPU.
func (p *Presence) enqueueLocked(w *pendingRoster) {
	p.due = append(p.due, w)
	if !p.writing {
		p.writing = true
		p.opts.Pool.Go(p.writeBatch)
	}
}

// writeSome brings the store up to date about some of what is due.
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
		if p.coalesceTimer != nil { // else StopCoalescing was quicker
			p.continueLocked()
		}
	})
}

// StopCoalescing ends the gathering of changes for good: who waits for the pool from now on waits for all that were noted before.
func (p *Presence) StopCoalescing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noCoalescing = true
	if p.coalesceTimer != nil {
		p.coalesceTimer.Stop()
		p.continueLocked()
	}
}

// writeMoreLocked goes on with what has become due.
func (p *Presence) continueLocked() {
	p.coalesceTimer = nil
	if p.writing = len(p.due) > 0; p.writing {
		p.opts.Pool.Go(p.writeBatch)
		return
	}
	p.due = nil
}

// writeWhole writes a roster of which the store may have anything. It is read first, so it goes alone.
func (p *Presence) rewriteRoster(w *pendingRoster) {
	p.mu.Lock()
	w.rewrite, w.changes = false, nil
	p.mu.Unlock()
	batch := []*rosterWrite{{pending: w, rewrite: true}}
	p.storeBatch(batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finishBatchLocked(batch)
}

// takeLocked takes as many of those that are due as go together, and lets those go that go alone.
func (p *Presence) takeBatchLocked() (batch []*rosterWrite) {
	for members := 0; members < maxChange && len(p.due) > 0; {
		w := p.due[0]
		if len(batch) > 0 && members+len(w.changes) > maxChange {
			break // it would keep the others waiting
		}
		p.due[0] = nil
		p.due = p.due[1:]
		if w.rewrite {
			p.opts.Pool.Go(func() { p.rewriteRoster(w) })
			continue
		}
		batch = append(batch, &rosterWrite{pending: w, changes: w.changes})
		members += len(w.changes)
		w.changes = nil
	}
	return batch
}

// writtenLocked is the end of a call.
func (p *Presence) finishBatchLocked(batch []*rosterWrite) {
	var failed error
	for _, b := range batch {
		switch w := b.pending; {
		case b.err != nil:
			failed = b.err
			w.rewrite, w.failed, w.changes = true, true, nil // some of it may have been written
		case len(w.changes) > 0 || w.rewrite:
			p.enqueueLocked(w)
		default:
			delete(p.pending, w.channel)
			w.release()
		}
	}
	if failed != nil {
		p.opts.Logger.Warn().Err(failed).Msg("presence not written; the next tick tries again")
	}
}

// retry takes up what failed.
func (p *Presence) retry() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.pending {
		if w.failed {
			w.failed = false
			p.enqueueLocked(w)
		}
	}
}

// sorted are changes as the store takes them: of each client the last that was said of its youngest connection.
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
