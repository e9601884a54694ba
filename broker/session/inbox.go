package session

import (
	"sort"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// inbox tracks how far a session has sent its client's queue, and how far the client has
// acknowledged it. Its methods are the state machine that sends the rest. They take the session,
// through which they write and call the store. Only the session's loop uses it.
type inbox struct {
	sent    int64   // the last id that was written, or skipped by an announced gap
	unacked []int64 // the written ids that are not acknowledged, ascending, at most queue.MaxWindow
	last    int64   // the last id that the queue had assigned at the bind, or at the last whole read
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

// expectsAck returns whether id was written and is not acknowledged.
func (in *inbox) expectsAck(id int64) bool { return id > in.ackTo && id <= in.sent }

// dropUnacked drops the unacknowledged ids up to id.
func (in *inbox) dropUnacked(id int64) {
	n := sort.Search(len(in.unacked), func(i int) bool { return in.unacked[i] > id })
	if in.unacked = in.unacked[n:]; len(in.unacked) == 0 {
		in.unacked = nil
	}
}

// hint handles a hint: message id follows prev in the client's queue. If the session has sent all
// messages up to prev, hint sends this one. Otherwise it reads the queue.
func (in *inbox) hint(s *Session, id, prev int64, data []byte) {
	switch {
	case s.state != open || id <= in.sent:
	case prev == in.sent && data != nil && !in.dirty && !in.reading && in.hasRoom(s):
		in.write(s, []queue.Message{{ID: id, Data: data}})
		in.afterWrite(s)
	default:
		in.markDirty(s)
	}
}

// hasRoom returns whether more messages may be written.
func (in *inbox) hasRoom(s *Session) bool {
	return len(in.unacked) < queue.MaxWindow && !s.conn.Backlogged()
}

// markDirty notes that the store may hold more messages, and reads the queue.
func (in *inbox) markDirty(s *Session) {
	in.dirty = true
	in.read(s)
}

// read reads the messages after the last one sent, if there may be any and if there is room.
func (in *inbox) read(s *Session) {
	if s.state != open || !in.dirty {
		return
	}
	if in.reading || !in.hasRoom(s) {
		s.shard.checkNextTick(s)
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
			in.writePage(s, page, err)
		})
	})
}

// writePage writes the messages of a page of the queue.
func (in *inbox) writePage(s *Session, page queue.Page, err error) {
	switch {
	case s.state != open:
		return
	case err != nil:
		in.dirty = true // the next tick tries again
		s.queueCallFailed(err)
		return
	}
	if page.Floor > in.sent {
		s.sendGap("", in.sent, page.Floor)
		in.sent = page.Floor
		in.dropUnacked(page.Floor)
	}
	if len(page.Messages) == 0 && page.More {
		s.shard.checkNextTick(s)
		in.dirty = true // the window is full: the next acknowledgement makes room
		return
	}
	for len(page.Messages) > 0 && page.Messages[0].ID <= in.sent { // acknowledged during the read
		page.Messages = page.Messages[1:]
	}
	for len(page.Messages) > 0 && s.state == open && !s.conn.Backlogged() {
		n := dialect.Fitting(page.Messages, func(m queue.Message) int { return len(m.Data) })
		in.write(s, page.Messages[:n])
		page.Messages = page.Messages[n:]
	}
	if len(page.Messages) > 0 || page.More {
		in.dirty = true
	} else {
		in.last = max(in.last, page.Last) // ids after the last message were withdrawn
	}
	in.afterWrite(s)
}

// write writes messages in one call. It writes a gap for each entry that stands for lost messages.
func (in *inbox) write(s *Session, messages []queue.Message) {
	s.shard.countDelivered(len(messages))
	s.conn.Cork()
	for i := range messages {
		m := &messages[i]
		in.sent = m.ID
		if after, to, lost := queue.Loss(m.Data); lost {
			// A client does not acknowledge a gap. Each connect sends the gap again until the
			// client has acknowledged a later message.
			s.conn.Send(gapEvent("", after, to))
			continue
		}
		s.conn.Send(wire.Event{Type: wire.TypeMessage, ID: &m.ID, Data: m.Data})
		in.unacked = append(in.unacked, m.ID)
	}
	s.conn.Uncork()
	s.checkBacklog()
}

// afterWrite flushes the connection and reads more messages. With "ack":"auto" it first
// acknowledges everything that was written, if the socket has taken it all.
func (in *inbox) afterWrite(s *Session) {
	s.conn.Flush()
	if s.state != open {
		return
	}
	if in.auto && !s.conn.Backlogged() {
		in.advanceAck(s, in.sent)
	}
	in.read(s)
}

// ack handles an acknowledgement of all messages up to an id. It may include messages that were
// sent on an earlier connection, which are not sent again.
func (in *inbox) ack(s *Session, req wire.Request) {
	switch {
	case s.state != open:
		s.refuseUnqueued(req.Ref, wire.Errorf(wire.BadRequest, "ack: connect comes first"))
	case req.AckOf != "" && req.AckOf != s.client: // the id is of another queue
	case req.ID <= 0 || req.ID > in.end() && req.AckOf == "":
		s.refuseUnqueued(req.Ref, wire.Errorf(wire.BadRequest, "id: %d was not assigned yet", req.ID))
	default:
		id := min(req.ID, in.end())
		in.sent = max(in.sent, id)
		in.advanceAck(s, id)
		in.read(s)
	}
}

// advanceAck notes that the client has received all messages up to id, and stores that.
func (in *inbox) advanceAck(s *Session, id int64) {
	if id > in.ackTo {
		in.ackTo, in.unsaved = id, true
	}
	in.dropUnacked(id)
	in.saveAck(s)
}

// saveAck adds the acknowledgement to the shard's ackBatch, if it is not stored. Acknowledgements
// that come during a call are coalesced into the next.
func (in *inbox) saveAck(s *Session) {
	if !in.acking && in.unsaved {
		in.acking = true
		s.shard.acks.add(s)
	}
}

// ackSaved handles the result of the call that stored the acknowledgement of id.
func (in *inbox) ackSaved(s *Session, id int64, err error) {
	in.acking = false
	switch {
	case s.state != open:
	case err != nil:
		s.queueCallFailed(err) // the next tick tries again
	default:
		in.unsaved = in.ackTo > id
		in.saveAck(s)
		in.read(s)
	}
}

// retry repeats store calls that failed.
func (in *inbox) retry(s *Session) {
	in.saveAck(s)
	in.read(s)
}
