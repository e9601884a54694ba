// Package dialecttest lets tests run over two dialects: the native one, and one that shares nothing
// with it. It has the client's side of both.
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

// Dialect is a dialect with its client's side.
type Dialect struct {
	Name    string
	Framing dialect.Framing // of its WebSocket frames
	// New returns the broker's side. A silent connection is pinged after ping.
	New func(ping time.Duration) Broker
	// Request encodes the JSON of a request as a unit. It returns text that is not JSON unchanged.
	Request func(text []byte) []byte
	// Stream adds the delimiters of raw TCP to a unit.
	Stream func(unit []byte) []byte
	// Empty is the shortest input on raw TCP that contains no unit.
	Empty []byte
	// Read reads the next unit from the broker on raw TCP. With an error it returns the bytes that
	// it has read.
	Read func(r *bufio.Reader) (unit []byte, err error)
	// Event decodes a unit from the broker.
	Event func(unit []byte) (wire.Event, error)
}

// Broker is the broker's side of a dialect, which also makes messages.
type Broker interface {
	dialect.Dialect
	dialect.Maker
}

// All returns the native dialect and MessagePack.
func All() []Dialect { return []Dialect{nativeDialect(), messagePackDialect()} }

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

func messagePackDialect() Dialect {
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
