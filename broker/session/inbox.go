package session

import (
	"errors"
	"sort"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// inbox is a session's place in its client queue. It belongs to the session's loop.
type inbox struct {
	sent    int64   // the last id that was written, or skipped as a declared gap
	flight  []int64 // ids written and not acknowledged, ascending, at most queue.MaxWindow
	last    int64   // the last id that the queue had assigned when the client was bound
	ackTo   int64   // the client has acknowledged up to here
	unsaved bool    // the store does not know that yet
	dirty   bool    // the store may hold more
	reading bool
	acking  bool
	auto    bool // "ack":"auto"
}

func (in *inbox) begin(b queue.Bound) { in.sent, in.ackTo, in.last = b.Acked, b.Acked, b.Last }

// owed is what the client has acknowledged and the store may not know, or 0.
func (in *inbox) owed() int64 {
	if in.unsaved {
		return in.ackTo
	}
	return 0
}

// settle forgets the ids up to id that were on the way.
func (in *inbox) settle(id int64) {
	n := sort.Search(len(in.flight), func(i int) bool { return in.flight[i] > id })
	if in.flight = in.flight[n:]; len(in.flight) == 0 {
		in.flight = nil
	}
}

// hint tells that message id follows prev in the client's queue.
func (s *Session) hint(id, prev int64, data []byte) {
	in := &s.inbox
	switch {
	case s.state != open || id <= in.sent:
	case prev == in.sent && data != nil && !in.dirty && !in.reading && s.inboxRoom():
		s.inboxWrite([]queue.Message{{ID: id, Data: data}})
		s.inboxWritten()
	default:
		s.inboxDirty()
	}
}

func (s *Session) inboxRoom() bool {
	return len(s.inbox.flight) < queue.MaxWindow && !s.conn.Backlogged()
}

// inboxDirty makes the store be read.
func (s *Session) inboxDirty() {
	s.inbox.dirty = true
	s.inboxRead()
}

// inboxRead reads the window behind what was sent, if that is useful now.
func (s *Session) inboxRead() {
	in := &s.inbox
	if s.state != open || !in.dirty {
		return
	}
	if in.reading || !s.inboxRoom() {
		s.soon()
		return
	}
	in.dirty, in.reading = false, true
	after, limit := in.sent, queue.MaxWindow-len(in.flight)
	s.m.opts.Pool.Go(func() {
		ctx, cancel := s.m.context()
		defer cancel()
		page, err := s.m.opts.Queue.Window(ctx, s.client, s.generation, after, limit)
		s.shard.loop.Post(func() {
			in.reading = false
			if err == nil && page.Last < after {
				s.m.opts.Notify.Lost(s.client, after)
			}
			s.inboxAdopt(page, err)
		})
	})
}

// inboxAdopt writes a page of the queue.
func (s *Session) inboxAdopt(page queue.Page, err error) {
	in := &s.inbox
	switch {
	case s.state != open:
		return
	case err != nil:
		in.dirty = true // the next tick tries again
		s.storeRefused(err)
		return
	}
	if page.Floor > in.sent {
		s.Gap("", in.sent, page.Floor)
		in.sent = page.Floor
		in.settle(page.Floor)
	}
	if len(page.Messages) == 0 && page.More {
		s.soon()
		in.dirty = true // all of the window is on the way: the next acknowledgement makes room
		return
	}
	for len(page.Messages) > 0 && page.Messages[0].ID <= in.sent { // acknowledged while they were read
		page.Messages = page.Messages[1:]
	}
	for len(page.Messages) > 0 && s.state == open && !s.conn.Backlogged() {
		n := wire.Fitting(page.Messages, func(m queue.Message) int { return len(m.Data) })
		s.inboxWrite(page.Messages[:n])
		page.Messages = page.Messages[n:]
	}
	if len(page.Messages) > 0 || page.More {
		in.dirty = true
	}
	s.inboxWritten()
}

func (s *Session) inboxWrite(messages []queue.Message) {
	s.countDelivered(len(messages))
	s.conn.Cork()
	for i := range messages {
		m := &messages[i]
		s.inbox.sent = m.ID
		if after, to, lost := queue.Loss(m.Data); lost {
			// A gap is not acknowledged itself, but with the message that follows it. Until then
			// each connect sends it again.
			s.inboxGap(after, to)
			continue
		}
		s.conn.Send(wire.Event{Type: wire.TypeMessage, ID: &m.ID, Data: m.Data})
		s.inbox.flight = append(s.inbox.flight, m.ID)
	}
	s.conn.Uncork()
	s.watchBacklog()
}

// inboxGap is a separate function because its arguments escape to the heap.
func (s *Session) inboxGap(after, to int64) {
	s.conn.Send(wire.Event{Type: wire.TypeGap, After: &after, ID: &to})
}

// inboxWritten goes on after a write: what went out wholly is received, where the client
// asked for that, and there may be room for more.
func (s *Session) inboxWritten() {
	s.conn.Flush()
	if s.state != open {
		return
	}
	if s.inbox.auto && !s.conn.Backlogged() {
		s.inboxAcked(s.inbox.sent)
	}
	s.inboxRead()
}

// ack is the client's acknowledgement of everything up to an id, also of what came on an earlier
// connection: that is not sent again.
func (s *Session) ack(req wire.Request) {
	switch {
	case s.state != open:
		s.reject(req.Ref, wire.Errorf(wire.BadRequest, "ack: connect comes first"))
	case req.ID <= 0 || req.ID > max(s.inbox.sent, s.inbox.last):
		s.reject(req.Ref, wire.Errorf(wire.BadRequest, "id: %d was not assigned yet", req.ID))
	default:
		s.inbox.sent = max(s.inbox.sent, req.ID)
		s.inboxAcked(req.ID)
		s.inboxRead()
	}
}

func (s *Session) inboxAcked(id int64) {
	in := &s.inbox
	if id > in.ackTo {
		in.ackTo, in.unsaved = id, true
	}
	in.settle(id)
	s.inboxFlush()
}

// inboxFlush has the store told, one call at a time: acknowledgements that come meanwhile
// go together in the next.
func (s *Session) inboxFlush() {
	if in := &s.inbox; !in.acking && in.unsaved {
		in.acking = true
		s.shard.tellAck(s)
	}
}

// inboxFlushed goes on when the store was told of the acknowledgement of id.
func (s *Session) inboxFlushed(id int64, err error) {
	in := &s.inbox
	in.acking = false
	switch {
	case s.state != open:
	case err != nil:
		s.storeRefused(err) // the next tick tries again
	default:
		in.unsaved = in.ackTo > id
		s.inboxFlush()
		s.inboxRead()
	}
}

// inboxRetry takes up what failed.
func (s *Session) inboxRetry() {
	s.inboxFlush()
	s.inboxRead()
}

// storeRefused acts on a failed call in the client's name: a stale generation means that
// the client is elsewhere, a forgotten one that the store lost it.
func (s *Session) storeRefused(err error) {
	switch {
	case errors.Is(err, queue.ErrStale):
		s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
		return
	case errors.Is(err, queue.ErrForgotten):
		s.unasserted = true // the next tick makes the binding again, and then all is tried again
	}
	s.soon()
	s.m.opts.Logger.Warn().Err(err).Msg("client queue: the next tick tries again")
}
