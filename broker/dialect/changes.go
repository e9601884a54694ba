package dialect

import (
	"sync/atomic"

	"switchboard/internal/state"
)

// Changes are the changes of a channel's state in a message. Subscribers with different filters
// receive different parts of them. A part is a message of its own, with State set. It is made on
// first use, and all connections share it.
type Changes struct {
	Entry     *state.Entry // nil if it cannot be decoded
	Size      int          // about how many bytes the entry and its parts take in memory
	WriteSize int          // about how many bytes the largest part takes on a socket
	// SendID makes subscribers that see the state, but nothing of the entry, receive its id. A client
	// resumes after the last id that it has received.
	SendID bool

	parts atomic.Pointer[part]
}

// part is the message for one filter, and an element of a linked list.
type part struct {
	filter  state.Filter
	message *Message // nil if subscribers with the filter receive nothing
	next    *part
}

// Shown returns the message that subscribers with a filter receive instead of m. It returns m
// itself if m changes no state, unless the filter hides its author, and if the filter shows no more
// than the data. It returns nil if a filter with State shows nothing.
func (m *Message) Shown(filter state.Filter, maker Maker) *Message {
	switch {
	case m.Changes != nil:
		return m.shownChanges(filter, maker)
	case m.Envelope == nil:
		return m
	case m.IsEmpty() && filter.State:
		return nil
	case filter.By || m.Envelope.By == "":
		return m
	}
	return m.withoutAuthor(maker)
}

// shownChanges is Shown for a message with Changes.
func (m *Message) shownChanges(filter state.Filter, maker Maker) *Message {
	var made *part
	for {
		first := m.Changes.parts.Load()
		for p := first; p != nil; p = p.next {
			if p.filter == filter {
				return p.message
			}
		}
		if made == nil {
			made = &part{filter: filter, message: m.part(filter, maker)}
		}
		made.next = first
		if m.Changes.parts.CompareAndSwap(first, made) {
			return made.message
		}
	}
}

// part makes the message for a filter, or returns nil if the filter shows nothing.
func (m *Message) part(filter state.Filter, maker Maker) *Message {
	if entry := m.Changes.Entry; entry != nil {
		if shown := entry.Show(filter); shown != nil {
			return maker.Part(m.Channel, m.ID, m.Data, shown)
		}
	}
	switch {
	case !m.IsEmpty() || !filter.State:
		return m
	case m.Changes.SendID:
		return maker.Part(m.Channel, m.ID, nil, nil)
	}
	return nil
}
