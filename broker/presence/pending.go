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
	gatherTime = 10 * time.Millisecond
)

// writing is the roster of one channel on this server while it differs from the store's. One call at a time is
// under way, and what comes meanwhile goes with the next.
type writing struct {
	channel string
	changes []change // as they came; none while whole is set
	whole   bool     // the store may have anything
	failed  bool     // the next tick tries again
	release func()   // of the channel, which must stay bound meanwhile
}

// change is what has become of a client.
type change struct {
	member registry.Member
	here   bool
}

// Join says that a client of this server has come into the channel.
func (p *Presence) Join(channel string, m registry.Member) { p.note(channel, change{m, true}) }

// Leave says that it has gone. A younger connection of the client stays.
func (p *Presence) Leave(channel, client string, generation int64) {
	p.note(channel, change{registry.Member{Client: client, Generation: generation}, false})
}

func (p *Presence) note(channel string, c change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.writingLocked(channel); !w.whole { // else it is among those that are here, or is not
		w.changes = append(w.changes, c)
	}
}

func (p *Presence) writingLocked(channel string) *writing {
	w := p.rosters[channel]
	if w == nil {
		w = &writing{channel: channel, release: p.opts.Hold(channel)}
		p.rosters[channel] = w
		p.dueLocked(w)
	}
	return w
}

// dueLocked has a roster written, with those of other channels that are due by then: of 15,000 clients that come back
// at once, each into its own channel, a job and a call for each roster were a tenth of the broker's CPU.
func (p *Presence) dueLocked(w *writing) {
	p.due = append(p.due, w)
	if !p.writer {
		p.writer = true
		p.opts.Pool.Go(p.writeSome)
	}
}

// writeSome brings the store up to date about some of what is due.
func (p *Presence) writeSome() {
	p.mu.Lock()
	batch := p.takeLocked()
	p.mu.Unlock()

	if len(batch) > 0 {
		p.store(batch)
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.writtenLocked(batch)
	if p.hurry || len(p.due) > maxChange {
		p.writeMoreLocked()
		return
	}
	p.pause = time.AfterFunc(gatherTime, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pause != nil { // else StopCoalescing was quicker
			p.writeMoreLocked()
		}
	})
}

// StopCoalescing ends the gathering of changes for good: who waits for the pool from now on waits for all that were noted before.
func (p *Presence) StopCoalescing() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hurry = true
	if p.pause != nil {
		p.pause.Stop()
		p.writeMoreLocked()
	}
}

// writeMoreLocked goes on with what has become due.
func (p *Presence) writeMoreLocked() {
	p.pause = nil
	if p.writer = len(p.due) > 0; p.writer {
		p.opts.Pool.Go(p.writeSome)
		return
	}
	p.due = nil
}

// writeWhole writes a roster of which the store may have anything. It is read first, so it goes alone.
func (p *Presence) writeWhole(w *writing) {
	p.mu.Lock()
	w.whole, w.changes = false, nil
	p.mu.Unlock()
	batch := []*written{{w: w, whole: true}}
	p.store(batch)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writtenLocked(batch)
}

// takeLocked takes as many of those that are due as go together, and lets those go that go alone.
func (p *Presence) takeLocked() (batch []*written) {
	for members := 0; members < maxChange && len(p.due) > 0; {
		w := p.due[0]
		if len(batch) > 0 && members+len(w.changes) > maxChange {
			break // it would keep the others waiting
		}
		p.due[0] = nil
		p.due = p.due[1:]
		if w.whole {
			p.opts.Pool.Go(func() { p.writeWhole(w) })
			continue
		}
		batch = append(batch, &written{w: w, changes: w.changes})
		members += len(w.changes)
		w.changes = nil
	}
	return batch
}

// writtenLocked is the end of a call.
func (p *Presence) writtenLocked(batch []*written) {
	var failed error
	for _, b := range batch {
		switch w := b.w; {
		case b.err != nil:
			failed = b.err
			w.whole, w.failed, w.changes = true, true, nil // some of it may have been written
		case len(w.changes) > 0 || w.whole:
			p.dueLocked(w)
		default:
			delete(p.rosters, w.channel)
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
	for _, w := range p.rosters {
		if w.failed {
			w.failed = false
			p.dueLocked(w)
		}
	}
}

// sorted are changes as the store takes them: of each client the last that was said of its youngest connection.
func sorted(changes []change) (c registry.PresenceChange) {
	if len(changes) > 1 {
		changes = youngest(changes)
	}
	for _, ch := range changes {
		if ch.here {
			c.Join = append(c.Join, ch.member)
		} else {
			c.Leave = append(c.Leave, ch.member)
		}
	}
	return c
}

func youngest(changes []change) []change {
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
