package tlsrecord

import (
	"context"
	"crypto/fips140"
	"crypto/tls"
	"errors"
	"net"
)

// errUnproved means that a takeover would not go on where crypto/tls ended.
var errUnproved = errors.New("tlsrecord: the records of the handshake do not match its keys")

// Accepted is a connection after its handshake.
type Accepted struct {
	State tls.ConnectionState
	// TLS is the connection if it was not taken over, otherwise nil.
	TLS *tls.Conn
	// Layer is the record layer of a connection that was taken over, otherwise nil.
	Layer *Layer
	// Ahead was received after the handshake: give it to Layer before anything else.
	Ahead []byte
}

// Accept makes the handshake of a server on a connection, until ctx ends. It takes the connection
// over if it has TLS 1.3 and want agrees. Then nothing but the caller uses conn: all methods of the
// tls.Conn fail. TLS 1.2 stays with its tls.Conn, and so does everything if crypto/fips140 is
// enforced, which forbids to choose nonces.
//
// config may have GetConfigForClient. Set the keys of session tickets with SetSessionTicketKeys:
// with automatic keys no session is resumed. After an error, close conn.
func Accept(ctx context.Context, conn net.Conn, config *tls.Config, want func(tls.ConnectionState) bool) (*Accepted, error) {
	t := &tap{Conn: conn}
	defer t.keys.wipe()
	c := tls.Server(t, withKeyLog(config, &t.keys))
	if err := c.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	a := &Accepted{State: c.ConnectionState()}
	if a.State.Version != tls.VersionTLS13 || fips140.Enforced() || !want(a.State) {
		t.pass()
		a.TLS = c
		return a, nil
	}
	var err error
	a.Layer, err = t.take(a.State.CipherSuite)
	a.Ahead = t.ahead
	return a, err
}

// withKeyLog returns a configuration that writes the secrets to keys. That which the client gets
// writes them: GetConfigForClient may choose it.
func withKeyLog(config *tls.Config, keys *trafficKeys) *tls.Config {
	choose := config.GetConfigForClient
	c := config.Clone()
	c.KeyLogWriter = keys
	if choose == nil {
		return c
	}
	c.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		chosen, err := choose(hello)
		if chosen != nil {
			chosen = chosen.Clone()
			chosen.KeyLogWriter = keys
		}
		return chosen, err
	}
	return c
}

// take ends the tls.Conn and returns the layer that goes on. The tls.Conn has read no record of the
// client with the new key, as it stops after Finished (4.4.4): so the client's next number is 0. It
// may have sent tickets (4.6.1) with the new key. They are counted.
func (t *tap) take(id uint16) (*Layer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sent := t.sent
	t.state, t.sent = taken, nil
	if t.left > 0 {
		return nil, errUnproved
	}
	l, err := newLayer(id, t.keys.client, t.keys.server, 0)
	if err != nil {
		return nil, err
	}
	if l.out.records, err = countSealed(id, t.keys.server, sent); err != nil {
		l.Wipe(nil)
		return nil, err
	}
	return l, nil
}

// countSealed returns how many of the records are sealed with the key of a traffic secret. These
// must be the last ones. A record that the key does not open with its number was sealed with the
// key of the handshake, unless one before was opened.
func countSealed(id uint16, secret, records []byte) (uint64, error) {
	var probe half
	defer func() { probe = half{} }()
	if err := probe.set(suiteOf(id), secret); err != nil {
		return 0, err
	}
	count := uint64(0)
	for len(records) > 0 {
		if len(records) < headerSize {
			return 0, errUnproved
		}
		n := headerSize + int(records[3])<<8 + int(records[4])
		if len(records) < n {
			return 0, errUnproved
		}
		if records[0] == typeApplicationData {
			probe.records = count
			switch _, err := probe.unseal(suiteOf(id), nil, records[:n], nil); {
			case err == nil:
				count++
			case !errors.Is(err, badRecordMAC):
				return 0, err
			case count > 0:
				return 0, errUnproved
			}
		}
		records = records[n:]
	}
	return count, nil
}
