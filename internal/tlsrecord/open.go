package tlsrecord

import "errors"

// maxEmpty is how many records without data may come in a row: each costs work and brings nothing.
// RFC 8446 has no limit; that of crypto/tls is the same.
const maxEmpty = 16

// Open opens the first record in input and appends its data to dst, which must not overlap with
// input. n is the size of the record. It is 0 if the record is not complete: call Open again when
// more has come. A record may have no data.
//
// ErrClosed is the regular end (6.1); what comes after it is not opened. Any other error ends the
// connection, too. Send the alert that [AlertOf] returns for it. After each call, Answer may have
// something to send.
func (l *Layer) Open(dst, input []byte, c *Ciphers) (out []byte, n int, err error) {
	if l.ended {
		return dst, 0, ErrClosed
	}
	out, n, err = l.open(dst, input, c)
	l.ended = err != nil
	return out, n, err
}

func (l *Layer) open(dst, input []byte, c *Ciphers) (out []byte, n int, err error) {
	body, err := bodyOf(input)
	if body == nil || err != nil {
		return dst, 0, err
	}
	n = headerSize + len(body)
	opened, err := l.in.unseal(suiteOf(l.suite), dst, input[:n], c)
	if err != nil {
		return dst, n, err
	}
	content, kind, err := contentOf(opened[len(dst):])
	if err == nil {
		err = l.handle(kind, content, c)
	}
	if err != nil || kind != typeApplicationData {
		return dst, n, err
	}
	return opened[:len(dst)+len(content)], n, nil
}

// unseal appends to dst what a record protects (5.2), or returns badRecordMAC.
func (h *half) unseal(s *suite, dst, record []byte, c *Ciphers) ([]byte, error) {
	aead, err := c.of(s, h)
	if err != nil {
		return dst, err
	}
	nonce := c.scratch()
	if err := h.nextNonce(nonce); err != nil {
		return dst, err
	}
	opened, err := aead.Open(dst, nonce[:], record[headerSize:], record[:headerSize])
	if err != nil {
		return dst, badRecordMAC
	}
	return opened, nil
}

// bodyOf returns what follows the header of the first record (5.1), nil if that is not complete.
// After a handshake all records have the same type. Their version is ignored.
func bodyOf(input []byte) ([]byte, error) {
	if len(input) > 0 && input[0] != typeApplicationData {
		return nil, unexpectedMessage
	}
	if len(input) < headerSize {
		return nil, nil
	}
	size := int(input[3])<<8 | int(input[4])
	switch {
	case size > maxBody:
		return nil, recordOverflow
	case size <= tagSize:
		return nil, badRecordMAC
	case len(input) < headerSize+size:
		return nil, nil
	}
	return input[headerSize : headerSize+size], nil
}

// contentOf returns the content and the type in a TLSInnerPlaintext (5.2), without its padding
// (5.4).
func contentOf(inner []byte) (content []byte, kind byte, err error) {
	if len(inner) > maxPlain+1 {
		return nil, 0, recordOverflow
	}
	end := len(inner) - 1
	for end >= 0 && inner[end] == 0 {
		end--
	}
	if end < 0 {
		return nil, 0, unexpectedMessage
	}
	return inner[:end], inner[end], nil
}

// handle changes the state after an authenticated record (5.1).
func (l *Layer) handle(kind byte, content []byte, c *Ciphers) error {
	switch {
	case kind == typeApplicationData && len(content) > 0:
		l.empty = 0
	case kind != typeApplicationData && len(content) == 0:
		return unexpectedMessage
	case l.empty >= maxEmpty:
		return unexpectedMessage
	default:
		l.empty++
	}
	if l.messageLen > 0 && kind != typeHandshake { // no other record between the parts of a message
		return unexpectedMessage
	}
	switch kind {
	case typeApplicationData:
		return nil
	case typeHandshake:
		return l.handleHandshake(content, c)
	case typeAlert:
		return handleAlert(content)
	}
	return unexpectedMessage
}

// AlertOf returns the alert to send after an error of Open: that of the error, none after
// ErrClosed, which close_notify answers, and internal_error otherwise.
func AlertOf(err error) Alert {
	var alert Alert
	switch {
	case errors.Is(err, ErrClosed), errors.As(err, new(PeerAlert)):
		return CloseNotify
	case errors.As(err, &alert):
		return alert
	}
	return internalError
}
