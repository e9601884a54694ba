package session

import (
	"sort"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
	"switchboard/queue"
)

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

// maxAckBatch is the most acknowledgements of one call: as many as fit one round trip to Redis.
const maxAckBatch = 512

// add queues the session's acknowledgement for the next call.
func (b *ackBatch) add(s *Session) {
	b.waiting = append(b.waiting, s)
	b.send()
}

// send stores the acknowledgements that wait, unless a call is under way.
func (b *ackBatch) send() {
	n := min(len(b.waiting), maxAckBatch)
	if n == 0 || b.sending {
		return
	}
	b.sending = true
	sessions := b.waiting[:n:n]
	if b.waiting = b.waiting[n:]; len(b.waiting) == 0 {
		b.waiting = nil
	}
	acks := make([]queue.Ack, n)
	for i, s := range sessions {
		acks[i] = queue.Ack{Client: s.client, Generation: s.generation, ID: s.inbox.ackTo}
	}
	m := b.sh.m
	m.opts.Pool.Go(func() {
		outcomes := m.opts.Queue.Acks(m.storeContext(), acks)
		b.sh.loop.Post(func() {
			b.sending = false
			for i, s := range sessions {
				s.inbox.ackSaved(s, acks[i].ID, outcomes[i].Err)
			}
			b.send()
		})
	})
}

// end returns the last id of the queue that the session has sent or knows of.
func (in *inbox) end() int64 { return max(in.sent, in.last) }

// compare reads the queue if the store has another end of it, or another generation. known was the
// end of the inbox before the store was asked. An inbox that has moved meanwhile has no gap: it may
// be ahead of the answer. But a store that is behind known has lost messages.
func (in *inbox) compare(s *Session, known int64, head queue.ClientHead) {
	if s.state == open && (head.Generation != s.generation || head.ID > in.end() || head.ID < known) {
		in.markDirty(s)
	}
}
