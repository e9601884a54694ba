package sse

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"

	"switchboard/internal/wire"
)

// The binary form of an id, before base64url without padding:
//
//	1 byte   version << 4 | flags
//	uvarint  the largest position, the base
//	position on $all
//	position in the client queue
//	string   the client's id: uvarint length, bytes
//	string   the secret, if flagSecret
//	{ 5 bytes  hash of a channel's name; position }*
//
// A position is stored as a uvarint: base − position + 1, or 0 for position 0. Message ids grow
// with time, so the differences are short.
const (
	version    = 1
	flagFinal  = 1 << 0
	flagSecret = 1 << 1
	// The two other bits of the flags are Position.Superseded.
	supersededShift = 2
)

const (
	// maxChannels is the most channels of one stream.
	maxChannels = 128
	// maxID is the most bytes of the binary form of an id with maxChannels channels.
	maxID = 1 + 3*9 + 2*(2+2*wire.MaxName+1) + maxChannels*(hashSize+9)
	// maxPosition is above every message id.
	maxPosition = 1 << 53
	hashSize    = 5
)

// hash identifies a channel in an id: the first 40 bits of the SHA-256 of its name.
type hash [hashSize]byte

func hashOf(name string) hash {
	sum := sha256.Sum256([]byte(name))
	return hash(sum[:hashSize])
}

// Position is the content of an id: the client's position in each channel, on $all and in its
// queue.
type Position struct {
	Client string // the client id
	Secret string // the secret that the broker drew for the client; "" if the client sent its own, or has a user
	All    int64  // on $all
	Inbox  int64  // in the client queue; 0 before its first message
	// Final means that the client should not reconnect.
	Final bool
	// Superseded is how often the client was superseded in a row, at most maxSuperseded.
	Superseded uint8

	channels map[hash]int64
}

// Channel returns the position in a channel. ok is false if there is none.
func (p *Position) Channel(name string) (after int64, ok bool) {
	after, ok = p.channels[hashOf(name)]
	return after, ok
}

var errPosition = errors.New("Last-Event-ID: it is not an id of this broker")

// ParsePosition reads an id.
func ParsePosition(text string) (*Position, error) {
	if len(text) > base64.RawURLEncoding.EncodedLen(maxID) {
		return nil, errPosition
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) == 0 || b[0]>>4 != version {
		return nil, errPosition
	}
	p := &Position{Final: b[0]&flagFinal != 0, Superseded: min(b[0]&0xf>>supersededShift, maxSuperseded)}
	r := reader{b: b[1:]}
	r.base = r.number(maxPosition)
	p.All, p.Inbox = r.position(), r.position()
	p.Client = r.text()
	if b[0]&flagSecret != 0 {
		p.Secret = r.text()
		r.failed = r.failed || p.Secret == ""
	}
	for len(r.b) > 0 && !r.failed {
		h := hash(r.take(hashSize))
		after := r.position()
		if _, twice := p.channels[h]; twice || len(p.channels) == maxChannels {
			return nil, errPosition
		}
		if p.channels == nil {
			p.channels = make(map[hash]int64)
		}
		p.channels[h] = after
	}
	if r.failed || wire.CheckClientID(p.Client) != nil || p.Secret != "" && wire.CheckSecret(p.Secret) != nil {
		return nil, errPosition
	}
	return p, nil
}

// reader reads the binary form. After a failure everything is zero.
type reader struct {
	b      []byte
	base   int64
	failed bool
}

func (r *reader) number(limit uint64) int64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 || n > limit {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[size:]
	return int64(n)
}

func (r *reader) position() int64 {
	n := r.number(uint64(r.base))
	if n == 0 {
		return 0
	}
	return r.base - n + 1
}

// take returns the next n bytes.
func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.failed, r.b = true, nil
		return make([]byte, n)
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) text() string { return string(r.take(int(r.number(2*wire.MaxName + 1)))) }

// appendID appends an id with the positions after the events written so far. It does not allocate.
func (c *codec) appendID(dst []byte, final bool) []byte {
	head := byte(version<<4) | min(c.supersededInARow(), maxSuperseded)<<supersededShift
	if final {
		head |= flagFinal
	}
	secret := ""
	if c.extra != nil {
		secret = c.extra.secret
	}
	if secret != "" {
		head |= flagSecret
	}
	// The binary form stands at the end of dst until it is encoded there: space of its own for the
	// longest id would have to be cleared for each event.
	start := len(dst)
	b := append(dst, head)
	base := max(c.all, c.inbox)
	for ch := range c.channels() {
		base = max(base, ch.after)
	}
	b = binary.AppendUvarint(b, uint64(base))
	b = appendPosition(b, base, max(c.all, 0))
	b = appendPosition(b, base, c.inbox)
	b = appendText(b, c.client)
	if secret != "" {
		b = appendText(b, secret)
	}
	for ch := range c.channels() {
		if ch.moved = false; ch.after >= 0 {
			b = append(b, ch.hash[:]...)
			b = appendPosition(b, base, ch.after)
		}
	}
	binaryForm := b[start:]
	b = base64.RawURLEncoding.AppendEncode(b, binaryForm)
	return append(b[:start], b[start+len(binaryForm):]...)
}

func appendPosition(b []byte, base, position int64) []byte {
	if position == 0 {
		return append(b, 0)
	}
	return binary.AppendUvarint(b, uint64(base-position+1))
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}
