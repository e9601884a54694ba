package native

import (
	"bytes"
	"encoding/json"
	"strconv"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
)

// smallMessage is a message with room for its bytes, which saves an allocation.
type smallMessage struct {
	dialect.Message
	space [smallSize]byte
}

// smallSize is the room of a smallMessage, in bytes. About 160 bytes remain for the channel and the
// payload. A smallMessage takes 352 bytes, which is a size class of the allocator.
const smallSize = 240

// overhead is the most bytes of a message besides its channel and its payload: the header of a
// frame, and the JSON around them.
const overhead = 10 + 64

// newMessage returns a message with the room of a header and of about n-10 bytes after it.
func newMessage(channel string, id int64, n int) (m *dialect.Message, b []byte) {
	if n <= smallSize {
		s := new(smallMessage)
		m, b = &s.Message, s.space[:0:smallSize]
	} else {
		m, b = new(dialect.Message), make([]byte, 0, n)
	}
	m.Channel, m.ID = channel, id
	return m, dialect.ReserveHeader(b)
}

// Message implements dialect.Maker. The message's Data is a part of its Prepared.
func (d *Dialect) Message(channel string, id int64, data []byte) *dialect.Message {
	m, b := newMessage(channel, id, overhead+2*len(channel)+len(data))
	m.Prepared = dialect.Prepare(appendMessage(b, channel, id, data), '\n')
	text := m.Prepared.Payload()
	m.Data = text[len(text)-1-len(data) : len(text)-1 : len(text)-1]
	return m
}

// authoredMessage is a message with an author and with room for its bytes, in one allocation.
type authoredMessage struct {
	dialect.Message
	envelope dialect.Envelope
	space    [authoredSize]byte
}

// authoredSize is the room of an authoredMessage, in bytes. About 190 bytes remain for the channel,
// the author and the payload. An authoredMessage takes 448 bytes, which is a size class of the
// allocator.
const authoredSize = 280

// Authored implements dialect.Maker. The message's Data is a part of its Prepared.
func (d *Dialect) Authored(channel string, id int64, data []byte, by string) *dialect.Message {
	a := new(authoredMessage)
	b := a.space[:0:authoredSize]
	if n := overhead + len(`,"by":""`) + 2*len(channel) + len(data) + 2*len(by); n > authoredSize {
		b = make([]byte, 0, n)
	}
	b = appendMessage(dialect.ReserveHeader(b), channel, id, data)
	end := len(b) - 1 // of data, before the brace
	b = append(appendField(b[:end], `,"by":`, by), '}')
	a.Prepared = dialect.Prepare(b, '\n')
	text := a.Prepared.Payload()
	end -= len(b) - len(text)
	a.envelope.By = by
	a.Channel, a.ID, a.Data, a.Envelope = channel, id, text[end-len(data):end:end], &a.envelope
	return &a.Message
}

// Part implements dialect.Maker.
func (d *Dialect) Part(channel string, id int64, data []byte, shown *wire.StateEvent) *dialect.Message {
	e := wire.Event{Type: wire.TypeMessage, Channel: channel, Data: data, StateEvent: shown}
	m, b := newMessage(channel, id, overhead+2*len(channel)+sizeOf(&e))
	e.ID = &m.ID
	m.Data, m.State, m.Prepared = data, shown, dialect.Prepare(AppendEvent(b, &e), '\n')
	return m
}

// Event implements dialect.Maker.
func (d *Dialect) Event(e wire.Event) *dialect.Message {
	const most = 192 // of the bytes that sizeOf does not count, nearly always
	b := make([]byte, 0, most+sizeOf(&e))
	m := &dialect.Message{Event: &e, Prepared: dialect.Prepare(AppendEvent(dialect.ReserveHeader(b), &e), '\n')}
	shareFields(m)
	if e.ID != nil && e.Type == wire.TypeGap {
		m.Channel, m.ID = e.Channel, *e.ID
	}
	return m
}

// shareFields makes the fields of a page a part of Prepared: views keep pages, and the fields are
// nearly all of their bytes.
func shareFields(m *dialect.Message) {
	s := m.Event.StateEvent
	if s == nil || len(s.Fields) == 0 {
		return
	}
	text := m.Prepared.Payload()
	end := len(text) - 1 // before the brace
	if from := end - len(s.Fields); from > 0 && bytes.Equal(text[from:end], s.Fields) {
		shared := *s
		shared.Fields = text[from:end:end]
		m.Event.StateEvent = &shared
	}
}

// sizeOf returns about how many bytes the payload, the fields and the changes of an event take.
func sizeOf(e *wire.Event) int {
	n := len(e.Data)
	if e.StateEvent != nil {
		n += len(e.Fields)
		for name, value := range e.Set {
			n += len(name) + len(value) + len(`"":,`)
		}
		n += len(e.By)
	}
	return n
}

// JSON returns the JSON of a message that a Dialect of this package made. The caller must not
// change it.
func JSON(m *dialect.Message) []byte { return m.Prepared.Payload() }

// appendMessage appends a message of a channel, or of a client's own queue if channel is empty.
// data must be compact JSON.
func appendMessage(b []byte, channel string, id int64, data []byte) []byte {
	b = append(b, `{"type":"message",`...)
	if channel != "" {
		b = append(b, `"channel":`...)
		b = appendName(b, channel)
		b = append(b, ',')
	}
	b = append(b, `"id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"data":`...)
	b = append(b, data...)
	return append(b, '}')
}

// appendName appends a name as a JSON string. Names are UTF-8 without control characters, so only
// two characters need an escape.
func appendName(dst []byte, name string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(name); i++ {
		if name[i] == '"' || name[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, name[i])
	}
	return append(dst, '"')
}

// AppendEvent appends the JSON of an event, on one line and without a delimiter. Payloads lose only
// white space. Other dialects use it for the same JSON.
func AppendEvent(dst []byte, e *wire.Event) []byte {
	switch {
	case isMessage(e):
		dst = appendMessage(dst, e.Channel, *e.ID, e.Data)
		if e.StateEvent == nil {
			return dst
		}
		return append(appendField(dst[:len(dst)-1], `,"by":`, e.By), '}')
	case isSimple(e):
		return appendSimple(dst, e)
	}
	return appendAny(dst, *e)
}

// appendAny appends the JSON of any event. It takes a copy of the event, because encoding/json
// moves its argument to the heap.
func appendAny(dst []byte, e wire.Event) []byte {
	out := sliceWriter(dst)
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // escaped markup is six times as long
	// Only a RawMessage that is not JSON fails, and the broker checks each one when it arrives.
	if encoder.Encode(e) != nil {
		refusal := wire.Event{Type: wire.TypeError, Ref: e.Ref, Code: string(wire.BadRequest), Message: "the payload is not JSON"}
		return appendSimple(dst, &refusal)
	}
	return out[:len(out)-1] // without the line break
}
