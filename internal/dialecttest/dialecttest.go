// Package dialecttest has what tests need of dialects: a second one, so that no test passes only
// because of JSON, and the client's side of both.
package dialecttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/internal/wire"
)

// Dialect is a dialect and the client's side of it.
type Dialect struct {
	Name    string
	Framing dialect.Framing // of its WebSocket frames
	// New returns the broker's side. A silent connection is pinged after ping.
	New func(ping time.Duration) Broker
	// Request returns a request, given as JSON, as a unit. Text that is no JSON stays as it is.
	Request func(text []byte) []byte
	// Stream returns a unit as it goes on raw TCP.
	Stream func(unit []byte) []byte
	// Empty is what carries no unit on raw TCP.
	Empty []byte
	// Read reads the next unit that the broker sent on raw TCP. With an error it returns what it has
	// read.
	Read func(r *bufio.Reader) (unit []byte, err error)
	// Event reads a unit from the broker.
	Event func(unit []byte) (wire.Event, error)
}

// Broker is the broker's side of a dialect.
type Broker interface {
	dialect.Dialect
	dialect.Maker
}

// All returns the native dialect and MessagePack.
func All() []Dialect { return []Dialect{nativeDialect(), netstringDialect()} }

func nativeDialect() Dialect {
	return Dialect{
		Name: "JSON", Framing: dialect.Text,
		New:     func(ping time.Duration) Broker { return native.New(ping) },
		Request: func(text []byte) []byte { return text },
		Stream:  func(unit []byte) []byte { return append(unit[:len(unit):len(unit)], '\n') },
		Empty:   []byte("\n"),
		Read: func(r *bufio.Reader) ([]byte, error) {
			line, err := r.ReadBytes('\n')
			return bytes.TrimSuffix(line, []byte("\n")), err
		},
		Event: wire.DecodeEvent,
	}
}

func netstringDialect() Dialect {
	return Dialect{
		Name: "MessagePack", Framing: dialect.Binary,
		New: func(ping time.Duration) Broker { return MessagePack{Ping: ping} },
		Request: func(text []byte) []byte {
			if !json.Valid(text) {
				return text
			}
			return packJSON(text)
		},
		Stream: func(unit []byte) []byte { return appendNetstring(nil, unit) },
		Empty:  []byte("0:,"),
		Read:   readNetstring,
		Event: func(unit []byte) (wire.Event, error) {
			text, err := unpack(unit)
			if err != nil {
				return wire.Event{}, err
			}
			return wire.DecodeEvent(text)
		},
	}
}
