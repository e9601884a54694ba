package sim

import (
	"context"
	"errors"
	"slices"

	"switchboard/broker/delivery"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// erasure is a call of a backend that erases a message.
type erasure struct {
	channel string
	id      int64
	done    bool
	checked bool
	result  delivery.EraseResult
	err     error
}

// drawErase erases a random message. It may be one that was dropped or erased already, or an entry
// that is no message.
func (w *world) drawErase() {
	channel := pick(w, append(slices.Clone(channelNames), wire.AllChannel))
	if ids := w.model.channel(channel).ids; len(ids) > 0 {
		w.erase(pick(w, w.live()), channel, ids[max(0, len(ids)-1-w.rng.IntN(12))])
	}
}

// erase starts to erase a message on n.
func (w *world) erase(n *node, channel string, id int64) {
	w.log("erase %d of %s on %s", id, channel, n.machine)
	e := &erasure{channel: channel, id: id}
	w.erasures = append(w.erasures, e)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		defer cancel()
		e.result, e.err = n.pusher.Erase(ctx, channel, id, false)
		e.done = true
	}()
	w.settle()
}

// checkErasures checks the erasures that ended in this step: each acknowledged one must be reported
// in the log.
func (w *world) checkErasures() {
	for _, e := range w.erasures {
		if !e.done || e.checked {
			continue
		}
		e.checked = true
		report, erased := w.model.channel(e.channel).erased[e.id]
		switch {
		case errors.Is(e.err, queue.ErrNoMessage):
			w.log("%d of %s is no message", e.id, e.channel)
			if entry := w.model.fieldsOf(e.channel).entry(e.id); entry == nil || entry.Erase == 0 {
				w.violate("message %d of %s was not known when it was erased", e.id, e.channel)
			}
		case e.err != nil:
			w.log("the erasure of %d of %s failed: %v", e.id, e.channel, e.err)
			if !w.faulty() {
				w.violate("the erasure of %d of %s failed without a fault: %v", e.id, e.channel, e.err)
			}
		default:
			w.log("%d of %s is erased by %d", e.id, e.channel, e.result.Report)
			if !erased || e.result.Report != report && e.result.Report != 0 {
				w.violate("message %d of %s was erased by %d, but %d reports it", e.id, e.channel, e.result.Report, report)
			}
		}
	}
}

// reportedBy notes the erasure that an entry of the log reports. From now on, the store must not
// have the message.
func (m *model) reportedBy(channel string, entry queue.Message) {
	e := m.fieldsOf(channel).entry(entry.ID)
	if e == nil || e.Erase == 0 {
		return
	}
	j := m.channel(channel)
	if first, again := j.erased[e.Erase]; again && e.Erase > j.floor {
		m.w.violate("message %d of %s was erased by %d, and again by %d", e.Erase, channel, first, entry.ID)
	}
	j.erased[e.Erase] = entry.ID
	m.checkStoredErased(channel, e.Erase)
}

// checkStoredErased checks that the store has no more than the changes of an erased message.
func (m *model) checkStoredErased(channel string, id int64) {
	page, _ := m.w.queue.ReadChannel(context.Background(), channel, id-1, 1)
	if len(page.Messages) > 0 && page.Messages[0].ID == id && !state.IsErased(page.Messages[0].Data) {
		m.w.violate("message %d of %s was erased, but the store has %s", id, channel, page.Messages[0].Data)
	}
}

// checkStoredErasures checks all erased messages in the end.
func (w *world) checkStoredErasures() {
	for _, channel := range append(slices.Clone(channelNames), wire.AllChannel) {
		for _, id := range w.model.channel(channel).ids {
			if w.model.channel(channel).erased[id] != 0 {
				w.model.checkStoredErased(channel, id)
			}
		}
	}
}

// left returns what stays of an entry, which is erased.
func left(entry *state.Entry) *state.Entry {
	if entry == nil {
		return new(state.Entry)
	}
	return entry.ErasedAt(1)
}

// mayShow reports whether a subscription may receive a message that nextVisible passes over,
// because it was erased. Its broker may not know this yet.
func (m *model) mayShow(channel string, s *subscription, id int64) bool {
	next := m.nextVisible(channel, s.cursor, s.filter)
	return m.channel(channel).erased[id] != 0 && id > s.cursor && (next == 0 || id < next)
}

// reported notes that the broker of the connection has reported an erasure.
func (c *conn) reported(channel string, report int64) {
	if c.node.reports == nil {
		c.node.reports = map[string]int64{}
	}
	c.node.reports[channel] = max(c.node.reports[channel], report)
}

// checkRevealed checks a message with data. If it was erased, the broker must not have reported
// that before the client subscribed.
func (c *conn) checkRevealed(channel string, s *subscription, id int64) {
	if report := c.client.w.model.channel(channel).erased[id]; report != 0 && report <= s.reported {
		c.client.w.violate("%v received message %d of %s, whose erasure %v had reported before with %d", c, id, channel, c.node.machine, report)
	}
}
