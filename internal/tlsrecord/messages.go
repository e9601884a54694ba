package tlsrecord

import (
	"fmt"
	"time"
)

// keyUpdateSize is the size of a KeyUpdate: type, length in three bytes, and update_requested.
const keyUpdateSize = 5

// messageKeyUpdate is the type of KeyUpdate among handshake messages (4).
const messageKeyUpdate = 24

// A client may replace its key again after so many records, or so many seconds. Otherwise it makes
// the server derive keys for nothing.
const (
	updateRecords = 1024
	updateSeconds = 10
)

// handleHandshake handles the content of a handshake record. Without client authentication after
// the handshake, the only message that a client may send is KeyUpdate (4.6.3). It must end with its
// record, because the next one has another key (5.1).
func (l *Layer) handleHandshake(content []byte, c *Ciphers) error {
	n := copy(l.message[l.messageLen:], content)
	l.messageLen += uint8(n)
	m := l.message[:l.messageLen]
	switch {
	case m[0] != messageKeyUpdate || n < len(content):
		return unexpectedMessage
	case len(m) >= 4 && (m[1] != 0 || m[2] != 0 || m[3] != 1):
		return decodeError
	case len(m) < keyUpdateSize:
		return nil // the rest is in the next record
	case m[4] > 1:
		return illegalParameter
	}
	l.messageLen = 0
	now := uint32(time.Since(started) / time.Second)
	if l.updatedAt > 0 && !l.asked && l.in.records < updateRecords && now-l.updatedAt < updateSeconds {
		return unexpectedMessage
	}
	l.updatedAt, l.asked = now, false
	l.owes = l.owes || m[4] == 1
	c.forget(&l.in)
	return l.in.update(suiteOf(l.suite))
}

// Answer appends a KeyUpdate if one must be sent: the client has asked for one, or the client must
// replace its key. Call it after Open; most often it appends nothing.
func (l *Layer) Answer(dst []byte, c *Ciphers) ([]byte, error) {
	if ask := l.in.records >= maxRecords && !l.asked; l.owes || ask {
		return l.updateKey(dst, ask, c)
	}
	return dst, nil
}

// updateKey appends a KeyUpdate and replaces the key of the records that follow (4.6.3). ask
// demands that the client replaces its key, too.
func (l *Layer) updateKey(dst []byte, ask bool, c *Ciphers) ([]byte, error) {
	requested := byte(0)
	if ask {
		requested, l.asked = 1, true
	}
	dst, err := l.seal(dst, typeHandshake, []byte{messageKeyUpdate, 0, 0, 1, requested}, c)
	if err != nil {
		return dst, err
	}
	l.owes = false
	c.forget(&l.out)
	return dst, l.out.update(suiteOf(l.suite))
}

// Alert is the description of an alert (6). As an error of [Layer.Open] it says what is wrong.
type Alert byte

// Alerts (6.1, 6.2).
const (
	CloseNotify       Alert = 0
	unexpectedMessage Alert = 10
	badRecordMAC      Alert = 20
	recordOverflow    Alert = 22
	illegalParameter  Alert = 47
	decodeError       Alert = 50
	internalError     Alert = 80
	userCanceled      Alert = 90
)

// Error returns the name in RFC 8446.
func (a Alert) Error() string {
	switch a {
	case CloseNotify:
		return "tlsrecord: close_notify"
	case unexpectedMessage:
		return "tlsrecord: unexpected_message"
	case badRecordMAC:
		return "tlsrecord: bad_record_mac"
	case recordOverflow:
		return "tlsrecord: record_overflow"
	case illegalParameter:
		return "tlsrecord: illegal_parameter"
	case decodeError:
		return "tlsrecord: decode_error"
	case internalError:
		return "tlsrecord: internal_error"
	}
	return fmt.Sprintf("tlsrecord: alert %d", byte(a))
}

// PeerAlert is an alert of the client that ends the connection.
type PeerAlert Alert

// Error says which alert.
func (a PeerAlert) Error() string { return fmt.Sprintf("tlsrecord: the client sent alert %d", byte(a)) }

// handleAlert handles an alert, which is alone in its record (5.1). Their level is ignored (6).
func handleAlert(content []byte) error {
	if len(content) != 2 {
		return decodeError
	}
	switch a := Alert(content[1]); a {
	case CloseNotify:
		return ErrClosed
	case userCanceled: // close_notify follows
		return nil
	default:
		return PeerAlert(a)
	}
}

// SealAlert appends an alert. Nothing can be sealed afterwards. Without an error, send CloseNotify
// at the end of a connection (6.1).
func (l *Layer) SealAlert(dst []byte, a Alert, c *Ciphers) ([]byte, error) {
	const warning, fatal = 1, 2
	level := byte(fatal)
	if a == CloseNotify {
		level = warning
	}
	dst, err := l.seal(dst, typeAlert, []byte{level, byte(a)}, c)
	l.closed = true
	return dst, err
}
