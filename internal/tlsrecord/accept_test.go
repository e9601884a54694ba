package tlsrecord

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newConfigs returns configurations of a server and of clients that trust it.
func newConfigs(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, DNSNames: []string{"broker"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	server = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, NextProtos: []string{"h2", "http/1.1"}}
	server.SetSessionTicketKeys([][32]byte{{1}})
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return server, &tls.Config{RootCAs: roots, ServerName: "broker", ClientSessionCache: tls.NewLRUClientSessionCache(4)}
}

// always takes over.
func always(tls.ConnectionState) bool { return true }

// newSockets returns both ends of a TCP connection, which ends with the test.
func newSockets(t testing.TB) (server, client net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return server, client
}

// connect makes a handshake over sockets.
func connect(t testing.TB, serverConfig, clientConfig *tls.Config) (socket net.Conn, a *Accepted, client *tls.Conn) {
	t.Helper()
	socket, raw := newSockets(t)
	client = tls.Client(raw, clientConfig)
	done := make(chan error, 1)
	go func() { done <- client.HandshakeContext(t.Context()) }()
	a, err := Accept(t.Context(), socket, serverConfig, always)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return socket, a, client
}

// TestTakeover exchanges random data with a client of crypto/tls after the takeover, also of a
// resumed session, until both sides close.
func TestTakeover(t *testing.T) {
	serverConfig, clientConfig := newConfigs(t)
	for _, resumed := range []bool{false, true} {
		socket, a, client := connect(t, serverConfig, clientConfig)
		if a.Layer == nil || a.TLS != nil || a.State.DidResume != resumed || a.Layer.out.records != 1 {
			t.Fatalf("taken over %t, resumed %t, %d tickets", a.Layer != nil, a.State.DidResume, a.Layer.out.records)
		}
		conn := NewConn(socket, a)
		up, down := randomBytes(1<<20, 1), randomBytes(1<<20, 2)
		done := make(chan error, 4)
		send := func(to io.Writer, data []byte, seed uint64) {
			random := mathrand.New(mathrand.NewPCG(seed, 0))
			for len(data) > 0 {
				n := min(len(data), 1+random.IntN(2*maxPlain>>random.IntN(12)))
				if _, err := to.Write(data[:n]); err != nil {
					done <- err
					return
				}
				data = data[n:]
			}
			done <- nil
		}
		receive := func(from io.Reader, want []byte) {
			got := make([]byte, len(want))
			_, err := io.ReadFull(from, got)
			if err == nil && !bytes.Equal(got, want) {
				err = errors.New("other data came")
			}
			done <- err
		}
		go send(client, up, 1)
		go send(conn, down, 2)
		go receive(conn, up)
		go receive(client, down)
		for range 4 {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("after close_notify: %v", err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func randomBytes(n int, seed uint64) []byte {
	random, b := mathrand.New(mathrand.NewPCG(seed, 0)), make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// TestServerEnds checks that a client of crypto/tls sees close_notify, and alerts.
func TestServerEnds(t *testing.T) {
	serverConfig, clientConfig := newConfigs(t)
	socket, a, client := connect(t, serverConfig, clientConfig)
	if err := NewConn(socket, a).Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client sees %v, want EOF", err)
	}
	socket, a, client = connect(t, serverConfig, clientConfig)
	conn := NewConn(socket, a)
	if _, err := client.NetConn().Write([]byte{23, 3, 3, 0, 30, 29: 1, 34: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, badRecordMAC) {
		t.Errorf("the server sees %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "bad record MAC") {
		t.Errorf("the client sees %v", err)
	}
}

// TestTruncation checks that the end of a socket without close_notify is an error.
func TestTruncation(t *testing.T) {
	serverConfig, clientConfig := newConfigs(t)
	socket, a, client := connect(t, serverConfig, clientConfig)
	conn := NewConn(socket, a)
	if _, err := client.Write([]byte("half of it")); err != nil {
		t.Fatal(err)
	}
	if err := client.NetConn().(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(conn); string(data) != "half of it" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q, %v", data, err)
	}
}

// TestNoTakeover checks that TLS 1.2 and what the caller does not want stay with crypto/tls.
func TestNoTakeover(t *testing.T) {
	serverConfig, clientConfig := newConfigs(t)
	old := clientConfig.Clone()
	old.MaxVersion = tls.VersionTLS12
	_, a, client := connect(t, serverConfig, old)
	if a.Layer != nil || a.TLS == nil {
		t.Fatal("TLS 1.2 was taken over")
	}
	go func() { _, _ = client.Write([]byte("hello")) }()
	b := make([]byte, 5)
	if _, err := io.ReadFull(a.TLS, b); err != nil || string(b) != "hello" {
		t.Errorf("read %q: %v", b, err)
	}
}

// TestAfterTakeover checks that the tls.Conn can do nothing any more, and that data which came with
// the end of the handshake is not lost.
func TestAfterTakeover(t *testing.T) {
	serverConfig, clientConfig := newConfigs(t)
	here, there := newSockets(t)
	tapped := &tap{Conn: here}
	c := tls.Server(tapped, withKeyLog(serverConfig, &tapped.keys))
	held := &joined{Conn: there}
	done := make(chan error, 1)
	go func() {
		client := tls.Client(held, clientConfig)
		err := client.HandshakeContext(t.Context())
		held.complete = true
		_, err2 := client.Write([]byte("early"))
		done <- errors.Join(err, err2)
	}()
	if err := errors.Join(c.HandshakeContext(t.Context()), <-done); err != nil {
		t.Fatal(err)
	}
	l, err := tapped.take(c.ConnectionState().CipherSuite)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := openAll(l, tapped.ahead, nil); string(data) != "early" || err != nil {
		t.Errorf("ahead is %q: %v", data, err)
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, errTaken) {
		t.Errorf("Write of the tls.Conn: %v", err)
	}
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, errTaken) {
		t.Errorf("Read of the tls.Conn: %v", err)
	}
	if err := errors.Join(c.SetDeadline(time.Now()), c.SetReadDeadline(time.Now()), c.SetWriteDeadline(time.Now())); !errors.Is(err, errTaken) {
		t.Errorf("SetDeadline of the tls.Conn: %v", err)
	}
	_ = c.Close()
	if _, err := here.Write([]byte{1}); err != nil {
		t.Errorf("the tls.Conn has closed the socket: %v", err)
	}
}

// joined sends what a client writes after ClientHello in one write, once it is complete.
type joined struct {
	net.Conn
	begun, complete bool
	held            []byte
}

func (j *joined) Write(b []byte) (int, error) {
	if !j.begun {
		j.begun = true
		return j.Conn.Write(b)
	}
	if j.held = append(j.held, b...); j.complete {
		_, err := j.Conn.Write(j.held)
		j.held = nil
		return len(b), err
	}
	return len(b), nil
}

// TestUnproved checks that a takeover is refused if a record of the new key is missing or unknown
// keys were used: then the next number is not certain.
func TestUnproved(t *testing.T) {
	secret := bytes.Repeat([]byte{7}, 32)
	l, err := newLayer(suites[0], secret, secret, 0)
	if err != nil {
		t.Fatal(err)
	}
	record := func() []byte { b, _ := l.seal(nil, typeHandshake, []byte("ticket"), nil); return b }
	other := []byte{23, 3, 3, 0, 30, 29: 1, 34: 1}
	first, second, third := record(), record(), record()
	for name, c := range map[string]struct {
		records [][]byte
		want    uint64
		err     error
	}{
		"none":              {nil, 0, nil},
		"handshake only":    {[][]byte{{22, 3, 3, 0, 1, 2}, {20, 3, 3, 0, 1, 1}, other, other}, 0, nil},
		"two tickets":       {[][]byte{other, first, second}, 2, nil},
		"three":             {[][]byte{first, second, third}, 3, nil},
		"one is missing":    {[][]byte{other, first, third}, 0, errUnproved},
		"unknown after one": {[][]byte{first, other}, 0, errUnproved},
		"cut off":           {[][]byte{other, first[:len(first)-1]}, 0, errUnproved},
		"cut in the header": {[][]byte{first, second[:4]}, 0, errUnproved},
	} {
		if got, err := countSealed(suites[0], secret, bytes.Join(c.records, nil)); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d records, %v; want %d, %v", name, got, err, c.want, c.err)
		}
	}
}

// TestConfigForClient checks that the configuration which a client gets writes its secrets too.
func TestConfigForClient(t *testing.T) {
	inner, clientConfig := newConfigs(t)
	outer := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return inner, nil }}
	socket, a, client := connect(t, outer, clientConfig)
	conn := NewConn(socket, a)
	go func() { _, _ = client.Write([]byte("hello")) }()
	b := make([]byte, 5)
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "hello" {
		t.Errorf("read %q: %v", b, err)
	}
	if inner.KeyLogWriter != nil {
		t.Error("the shared configuration has a key log")
	}
}

// TestAcceptEnds checks that a client that sends nothing ends with the context.
func TestAcceptEnds(t *testing.T) {
	serverConfig, _ := newConfigs(t)
	here, there := net.Pipe()
	defer there.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := Accept(ctx, here, serverConfig, always)
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Accept returned %v", err)
	}
}

// TestUnreadRecord checks that there is no takeover within a record.
func TestUnreadRecord(t *testing.T) {
	secret := make([]byte, 32)
	tapped := &tap{left: 1, keys: trafficKeys{secret, secret}}
	if _, err := tapped.take(suites[0]); !errors.Is(err, errUnproved) {
		t.Errorf("took over: %v", err)
	}
}

// TestFailedWrite checks that nothing is sealed after a write that may have sent part of a record.
func TestFailedWrite(t *testing.T) {
	server, _ := newPair(t, suites[0])
	socket := &cutConn{}
	conn := NewConn(socket, &Accepted{Layer: server})
	for range 2 {
		if n, err := conn.Write([]byte("hello")); n != 0 || !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("wrote %d bytes: %v", n, err)
		}
	}
	if _, _, _, _, err := conn.Detach(); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Detach: %v", err)
	}
	if socket.writes != 1 || server.out.records != 1 {
		t.Errorf("%d writes, %d records", socket.writes, server.out.records)
	}
}

// cutConn is a socket whose first write sends a part.
type cutConn struct {
	net.Conn
	writes int
}

func (c *cutConn) Write([]byte) (int, error) {
	if c.writes++; c.writes == 1 {
		return 3, io.ErrShortWrite
	}
	return 0, nil
}
