package session

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/broker/work"
	"switchboard/queue"
)

// comparedPerCall is how many clients' queues one store call compares.
const comparedPerCall = 128

// Compare finds the sessions whose queue has other messages in the store than the session has sent,
// because hints may have been lost, and has only these read their queues. A session whose client is
// bound elsewhere finds that out, too. The calls are spread over pace. What could not be compared
// is compared again by later ticks; Compare returns the first error. Do not call it on a loop.
func (m *Manager) Compare(ctx context.Context, pace time.Duration) error {
	m.binder.NoteHints()
	return m.compare(ctx, m.clients.sessions(), pace)
}

func (m *Manager) compare(ctx context.Context, list []*Session, pace time.Duration) error {
	var first work.FirstError
	part := work.PartOf(m.opts.Master, func(s *Session) string { return s.client })
	work.InParts(ctx, list, part, comparedPerCall, pace, func(chunk []*Session) (answers bool) {
		return !work.TimedOut(first.Note(m.compareChunk(ctx, chunk)))
	}, func(s *Session) { m.comparisons.Failed(s.client) })
	return first.Err()
}

// sentUpTo is what a session has sent of its client's queue.
type sentUpTo struct {
	s     *Session
	known queue.ClientKnown
	reads bool // the session will read its queue in any case, or has ended
}

// compareChunk compares sessions with one store call.
func (m *Manager) compareChunk(ctx context.Context, chunk []*Session) (first error) {
	list := make([]sentUpTo, len(chunk))
	for i, s := range chunk {
		list[i].s = s
	}
	m.eachOnLoop(list, func(u *sentUpTo) { u.s.noteSent(u) })
	list = slices.DeleteFunc(list, func(u sentUpTo) bool {
		if u.reads {
			m.comparisons.Done(u.known.Client)
		}
		return u.reads
	})
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(u, v sentUpTo) int { return strings.Compare(u.known.Client, v.known.Client) }) // a simulation repeats it
	known := make([]queue.ClientKnown, len(list))
	for i := range list {
		known[i] = list[i].known
	}
	for i, o := range m.opts.Queue.ClientHeads(ctx, known) {
		if o.Err != nil {
			m.comparisons.Failed(known[i].Client)
			if first == nil {
				first = o.Err
			}
			continue
		}
		m.comparisons.Done(known[i].Client)
		if o.Value != (queue.ClientHead{ID: known[i].ID, Generation: known[i].Generation}) {
			list[i].s.compareWith(known[i].ID, o.Value)
		}
	}
	return first
}

// compareWith has the session compare its inbox with the end of the queue in the store, on its
// loop.
func (s *Session) compareWith(known int64, head queue.ClientHead) {
	s.shard.loop.Post(func() { s.inbox.compare(s, known, head) })
}

// eachOnLoop calls f for each element of list, on the loop of its session, and returns when all
// calls have returned.
func (m *Manager) eachOnLoop(list []sentUpTo, f func(*sentUpTo)) {
	var wg sync.WaitGroup
	for _, sh := range m.shards {
		wg.Add(1)
		sh.loop.Post(func() {
			defer wg.Done()
			for i := range list {
				if list[i].s.shard == sh {
					f(&list[i])
				}
			}
		})
	}
	wg.Wait()
}

// noteSent sets what s has sent.
func (s *Session) noteSent(u *sentUpTo) {
	s.checkFullWindow()
	in := &s.inbox
	u.known = queue.ClientKnown{Client: s.client, ID: in.end(), Generation: s.generation, Empty: len(in.unacked) == 0}
	u.reads = s.state != open || in.dirty
}
