package hub

import (
	"slices"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// report encodes the report that a message was erased. All subscribers receive it.
func (c *Channel) report(id, erased int64) *dialect.Message {
	return c.hub.opts.Messages.Part(c.Name, id, nil, &wire.StateEvent{Erase: erased})
}

// erasedBy returns the id of the message whose erasure m reports, or 0.
func erasedBy(m *dialect.Message) int64 {
	if m.State == nil {
		return 0
	}
	return m.State.Erase
}

// erased returns what stays of a message. No subscriber receives it, except for changes of fields.
func erased(m *dialect.Message) *dialect.Message {
	left := &dialect.Message{Channel: m.Channel, ID: m.ID, Envelope: new(dialect.Envelope)}
	if c := m.Changes; c != nil {
		left.Changes = &dialect.Changes{Size: c.Size, WriteSize: c.WriteSize, SendID: c.SendID}
		if c.Entry != nil {
			left.Changes.Entry = c.Entry.ErasedAt(c.Entry.Erased)
		}
	}
	return left
}

// erase replaces the messages of the tail whose erasures are reported by one of the reports. The
// array of the messages is copied, because other tails share it.
func (t *tail) erase(reports []*dialect.Message) {
	copied := false
	for _, report := range reports {
		id := erasedBy(report)
		if id == 0 {
			continue
		}
		i, found := search(t.messages, id)
		if !found || isMarker(t.messages[i]) || erasedBy(t.messages[i]) != 0 {
			continue
		}
		if !copied {
			t.messages, copied = slices.Clone(t.messages), true
		}
		left := erased(t.messages[i])
		t.bytes += int32(left.Size() - t.messages[i].Size())
		t.messages[i] = left
		t.kinds |= kindsOf(left)
	}
}
