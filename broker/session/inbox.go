package session

import (
	"errors"
	"sort"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// inbox is how far a session is in its client's queue. Only the session's loop uses it.
type inbox struct {
	sent    int64   // the last id that was written, or skipped by an announced gap
	unacked []int64 // the written ids that are not acknowledged, ascending, at most queue.MaxWindow
	last    int64   // the last id that the queue had assigned when the client was bound
	ackTo   int64   // the last id that the client has acknowledged
	unsaved bool    // ackTo is not stored yet
	dirty   bool    // the store may hold messages after sent
	reading bool    // a read of the queue is under way
	acking  bool    // the session is in the shard's ackBatch
	auto    bool    // "ack":"auto": a written message counts as acknowledged
}

// begin sets the inbox to the state of the queue at the bind.
func (in *inbox) begin(b queue.Bound) { in.sent, in.ackTo, in.last = b.Acked, b.Acked, b.Last }

// unsavedAck returns the acknowledgement that the store may not have, or 0.
func (in *inbox) unsavedAck() int64 {
	if in.unsaved {
		return in.ackTo
	}
	return 0
}

// dropUnacked drops the unacknowledged ids up to id.
func (in *inbox) dropUnacked(id int64) {
	n := sort.Search(len(in.unacked), func(i int) bool { return in.unacked[i] > id })
	if in.unacked = in.unacked[n:]; len(in.unacked) == 0 {
		in.unacked = nil
	}
}

// hint handles a hint: message id follows prev in the client's queue. It sends the message if all
// before it were sent, and else reads the queue.
func (s *Session) hint(id, prev int64, data []byte) {
	in := &s.inbox
	switch {
	case s.state != open || id <= in.sent:
	case prev == in.sent && data != nil && !in.dirty && !in.reading && s.inboxRoom():
		s.inboxWrite([]queue.Message{{ID: id, Data: data}})
		s.inboxAfterWrite()
	default:
		s.inboxMarkDirty()
	}
}

// inboxRoom returns whether more messages may be written.
func (s *Session) inboxRoom() bool {
	return len(s.inbox.unacked) < queue.MaxWindow && !s.conn.Backlogged()
}

// inboxMarkDirty notes that the store may hold more messages, and reads it.
func (s *Session) inboxMarkDirty() {
	s.inbox.dirty = true
	s.inboxRead()
}

// inboxRead reads the messages after the last one sent, if there may be any and if there is room.
func (s *Session) inboxRead() {
	in := &s.inbox
	if s.state != open || !in.dirty {
		return
	}
	if in.reading || !s.inboxRoom() {
		s.checkNextTick()
		return
	}
	in.dirty, in.reading = false, true
	after, limit := in.sent, queue.MaxWindow-len(in.unacked)
	s.m.opts.Pool.Go(func() {
		page, err := s.m.opts.Queue.Window(s.m.storeContext(), s.client, s.generation, after, limit)
		s.shard.loop.Post(func() {
			in.reading = false
			if err == nil && page.Last < after {
				s.m.opts.Notify.Lost(s.client, after)
			}
			s.inboxWritePage(page, err)
		})
	})
}

// inboxWritePage writes the messages of a page of the queue.
func (s *Session) inboxWritePage(page queue.Page, err error) {
	in := &s.inbox
	switch {
	case s.state != open:
		return
	case err != nil:
		in.dirty = true // the next tick tries again
		s.inboxCallFailed(err)
		return
	}
	if page.Floor > in.sent {
		s.Gap("", in.sent, page.Floor)
		in.sent = page.Floor
		in.dropUnacked(page.Floor)
	}
	if len(page.Messages) == 0 && page.More {
		s.checkNextTick()
		in.dirty = true // the window is full: the next acknowledgement makes room
		return
	}
	for len(page.Messages) > 0 && page.Messages[0].ID <= in.sent { // acknowledged during the read
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
	s.inboxAfterWrite()
}

// inboxWrite writes messages, and gaps that stand for lost ones, in one call.
func (s *Session) inboxWrite(messages []queue.Message) {
	s.countDelivered(len(messages))
	s.conn.Cork()
	for i := range messages {
		m := &messages[i]
		s.inbox.sent = m.ID
		if after, to, lost := queue.Loss(m.Data); lost {
			// A client does not acknowledge a gap, but the message after it. Until then each
			// connect sends the gap again.
			s.conn.Send(gapEvent("", after, to))
			continue
		}
		s.conn.Send(wire.Event{Type: wire.TypeMessage, ID: &m.ID, Data: m.Data})
		s.inbox.unacked = append(s.inbox.unacked, m.ID)
	}
	s.conn.Uncork()
	s.watchBacklog()
}

// inboxAfterWrite acknowledges what was written, if the client asked for that and the socket has
// taken it all, and reads more messages.
func (s *Session) inboxAfterWrite() {
	s.conn.Flush()
	if s.state != open {
		return
	}
	if s.inbox.auto && !s.conn.Backlogged() {
		s.inboxAcked(s.inbox.sent)
	}
	s.inboxRead()
}

// ack handles an acknowledgement of all messages up to an id. It may include messages that were
// sent on an earlier connection, which are not sent again.
func (s *Session) ack(req wire.Request) {
	switch {
	case s.state != open:
		s.refuseUnqueued(req.Ref, wire.Errorf(wire.BadRequest, "ack: connect comes first"))
	case req.Of != "" && req.Of != s.client: // the id is of another queue
	case req.ID <= 0 || req.ID > max(s.inbox.sent, s.inbox.last):
		s.refuseUnqueued(req.Ref, wire.Errorf(wire.BadRequest, "id: %d was not assigned yet", req.ID))
	default:
		s.inbox.sent = max(s.inbox.sent, req.ID)
		s.inboxAcked(req.ID)
		s.inboxRead()
	}
}

// inboxAcked notes that the client has received all messages up to id.
func (s *Session) inboxAcked(id int64) {
	in := &s.inbox
	if id > in.ackTo {
		in.ackTo, in.unsaved = id, true
	}
	in.dropUnacked(id)
	s.inboxStoreAck()
}

// inboxStoreAck has the acknowledgement stored. Acknowledgements that come during a call are
// coalesced into the next.
func (s *Session) inboxStoreAck() {
	if in := &s.inbox; !in.acking && in.unsaved {
		in.acking = true
		s.shard.acks.add(s)
	}
}

// inboxAckStored handles the result of storing the acknowledgement of id.
func (s *Session) inboxAckStored(id int64, err error) {
	in := &s.inbox
	in.acking = false
	switch {
	case s.state != open:
	case err != nil:
		s.inboxCallFailed(err) // the next tick tries again
	default:
		in.unsaved = in.ackTo > id
		s.inboxStoreAck()
		s.inboxRead()
	}
}

// inboxRetry repeats store calls that failed.
func (s *Session) inboxRetry() {
	s.inboxStoreAck()
	s.inboxRead()
}

// inboxCallFailed handles a failed store call about the client. ErrStale means that the client is
// connected elsewhere, ErrForgotten that the store has lost the client's record.
func (s *Session) inboxCallFailed(err error) {
	switch {
	case errors.Is(err, queue.ErrStale):
		s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
		return
	case errors.Is(err, queue.ErrForgotten):
		s.mustRenew = true // the next tick renews the binding, and later ticks repeat the call
	}
	s.checkNextTick()
	s.m.opts.Logger.Warn().Err(err).Msg("client queue: the next tick tries again")
}
