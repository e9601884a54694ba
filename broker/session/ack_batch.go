package session

import "switchboard/queue"

// maxAckBatch is the most acknowledgements of one call: as many as fit one round trip to Redis.
const maxAckBatch = 512

// ackBatch coalesces the acknowledgements of a shard's sessions. One call to the store is under way
// at a time; the acknowledgements that come meanwhile form the next. Only the shard's loop uses it.
//
// A push to one of 10,000 clients takes 79 µs of CPU this way (71 to 83, Redis included). Before,
// each acknowledgement had a job, a command and a task of its own, and its script had no fast
// path: a push took 105 µs (74 to 111). The numbers are from three pairs of runs on a shared
// machine.
type ackBatch struct {
	sh      *shard
	waiting []*Session // their acknowledgements are in no call yet
	sending bool       // a call is under way
}

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
