package tlsrecord

import (
	"errors"
	"time"
)

// Types of content (5.1).
const (
	typeAlert           = 21
	typeHandshake       = 22
	typeApplicationData = 23
)

const (
	headerSize = 5
	// maxPlain is the most content of a record (5.1).
	maxPlain = 1 << 14
	// maxBody is the most that follows the header of a record (5.2).
	maxBody = maxPlain + 256
	// MaxRecord is the size of the largest record, in bytes.
	MaxRecord = headerSize + maxBody
	// Overhead is what a record adds to its content, in bytes: header, type and tag.
	Overhead = headerSize + 1 + tagSize
)

// ErrClosed means that the connection has ended: the client has said so, or an alert was sent.
var ErrClosed = errors.New("tlsrecord: the connection is closed")

// Layer is the record layer of one connection after its handshake. It is not safe for concurrent
// use, and must not be copied once it was used. Call [Layer.Wipe] at its end.
type Layer struct {
	in, out half
	suite   uint16

	message    [keyUpdateSize]byte // the part of a handshake message that has come
	messageLen uint8
	empty      uint8  // records without data in a row
	updatedAt  uint32 // when the client replaced its key last, in seconds since started; 0 for never
	owes       bool   // a KeyUpdate must be sent before the next data
	asked      bool   // the client was asked for a KeyUpdate
	ended      bool   // nothing more is received
	closed     bool   // nothing more is sent
}

// started is when this process began, for Layer.updatedAt.
var started = time.Now().Add(-time.Second)

// newLayer returns the layer that begins with these traffic secrets (7.1), and the number of
// records that were sent with them.
func newLayer(id uint16, client, server []byte, sent uint64) (*Layer, error) {
	s := suiteOf(id)
	if s == nil || len(client) != s.secretSize || len(server) != s.secretSize {
		return nil, errors.New("tlsrecord: unknown cipher suite or secrets of another size")
	}
	l := &Layer{suite: id}
	if err := l.in.set(s, client); err != nil {
		return nil, err
	}
	if err := l.out.set(s, server); err != nil {
		return nil, err
	}
	l.out.records = sent
	return l, nil
}

// Seal appends the records with data to dst, preceded by what [Layer.Answer] would append. data may
// be of any size; none makes no record. Records that were sealed must be sent once, in this order.
func (l *Layer) Seal(dst, data []byte, c *Ciphers) ([]byte, error) {
	dst, err := l.Answer(dst, c)
	for len(data) > 0 && err == nil {
		if l.out.records >= maxRecords {
			if dst, err = l.updateKey(dst, true, c); err != nil {
				break
			}
		}
		n := min(len(data), maxPlain)
		dst, err = l.seal(dst, typeApplicationData, data[:n], c)
		data = data[n:]
	}
	return dst, err
}

// SealedSize returns the size of the records with n bytes of data, without a KeyUpdate.
func SealedSize(n int) int { return n + (n+maxPlain-1)/maxPlain*Overhead }

// seal appends one record (5.2) without padding.
func (l *Layer) seal(dst []byte, kind byte, content []byte, c *Ciphers) ([]byte, error) {
	if l.closed {
		return dst, ErrClosed
	}
	aead, err := c.of(suiteOf(l.suite), &l.out)
	if err != nil {
		return dst, err
	}
	nonce := c.scratch()
	if err := l.out.nextNonce(nonce); err != nil {
		return dst, err
	}
	size := len(content) + 1 + tagSize
	start := len(dst)
	dst = append(dst, typeApplicationData, 3, 3, byte(size>>8), byte(size))
	plain := len(dst)
	dst = append(dst, content...)
	dst = append(dst, kind)
	return aead.Seal(dst[:plain], nonce[:], dst[plain:], dst[start:plain]), nil
}

// Wipe overwrites the keys and forgets the ciphers. Nothing can be sealed or opened afterwards.
func (l *Layer) Wipe(c *Ciphers) {
	c.forget(&l.in)
	c.forget(&l.out)
	*l = Layer{ended: true, closed: true}
}
