package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"switchboard/broker/auth"
	"switchboard/registry"
)

// dialHandshake dials n as the server from, with the header, and sends the proof that the function
// returns for the listener's hello. It returns the answer, and nil if there is no connection.
func dialHandshake(t *testing.T, n *node, from string, header http.Header, proof func(hello) []byte) (*http.Response, *websocket.Conn) {
	t.Helper()
	conn, answer, err := websocket.Dial(t.Context(), "ws://"+n.host+"/peer/link?from="+from+"&to="+n.opts.Self(),
		&websocket.DialOptions{HTTPClient: n.client, HTTPHeader: header})
	if err != nil {
		return answer, nil
	}
	t.Cleanup(func() { conn.CloseNow() })
	if proof != nil {
		if err := conn.Write(t.Context(), websocket.MessageBinary, proof(readHello(answer.Header))); err != nil {
			t.Fatal(err)
		}
	}
	return answer, conn
}

// expectClosed waits until the other end closes the connection.
func expectClosed(t *testing.T, conn *websocket.Conn) {
	t.Helper()
	if _, _, err := conn.Read(t.Context()); err == nil {
		t.Error("the connection is still open")
	}
}

func TestHandshake(t *testing.T) {
	b := newNode(t, "b", withSecret("between us")).start()
	ours := hello{version: version, nonce: auth.NewPeerNonce(), hasNonce: true}
	header := http.Header{headerPeer: {ours.String()}}
	link := func(theirs hello) auth.PeerLink {
		return auth.PeerLink{Dialer: "a", Listener: "b", DialerNonce: ours.nonce, ListenerNonce: theirs.nonce}
	}
	var seen []byte // the proof of an accepted dialer
	answer, conn := dialHandshake(t, b, "a", header, func(theirs hello) []byte {
		if !b.opts.Secret.Verify(auth.PeerListener, link(theirs), theirs.proof) {
			t.Error("the listener's proof is not valid")
		}
		seen = b.opts.Secret.Prove(auth.PeerDialer, link(theirs))
		return seen
	})
	if conn == nil {
		t.Fatal(answer)
	}
	b.awaitLog("peer link begins")

	for name, proof := range map[string]func(hello) []byte{
		"replayed":      func(hello) []byte { return seen },
		"reflected":     func(theirs hello) []byte { return theirs.proof },
		"swapped roles": func(theirs hello) []byte { return b.opts.Secret.Prove(auth.PeerListener, link(theirs)) },
		"of another server": func(theirs hello) []byte {
			l := link(theirs)
			l.Dialer = "c"
			return b.opts.Secret.Prove(auth.PeerDialer, l)
		},
		"to another server": func(theirs hello) []byte {
			l := link(theirs)
			l.Listener = "c"
			return b.opts.Secret.Prove(auth.PeerDialer, l)
		},
		"another secret": func(theirs hello) []byte {
			s, _ := auth.NewPeerSecret(strings.Repeat("x", auth.PeerSecretBytes))
			return s.Prove(auth.PeerDialer, link(theirs))
		},
		"empty": func(hello) []byte { return nil },
	} {
		_, conn := dialHandshake(t, b, "a", header, proof)
		expectClosed(t, conn)
		if reason := <-b.refused; reason != RefusedProof {
			t.Errorf("%s: refused because %s", name, reason)
		}
	}
	if _, conn := dialHandshake(t, b, "a", header, func(hello) []byte { return make([]byte, 33) }); conn != nil {
		expectClosed(t, conn)
		if reason := <-b.refused; reason != RefusedNoProof {
			t.Errorf("a long proof: refused because %s", reason)
		}
	}
	select {
	case line := <-b.logs:
		t.Errorf("logged %+v", line) // no other link began, and the first one did not end
	default:
	}
}

// TestNoHandshake checks that without a nonce the listener opens no link and sends no proof.
func TestNoHandshake(t *testing.T) {
	b := newNode(t, "b", withSecret("between us")).start()
	clear := http.Header{"Authorization": {"Bearer between us"}}
	for name, c := range map[string]struct {
		header http.Header
		reason string
	}{
		"nothing":         {nil, RefusedNoProof},
		"an older server": {clear, RefusedClear},
		"no nonce":        {http.Header{headerPeer: {version}}, RefusedNoProof},
		"a short nonce":   {http.Header{headerPeer: {version + " 00"}}, RefusedNoProof},
		"another version": {http.Header{headerPeer: {"1 " + strings.Repeat("00", 32)}}, RefusedNoProof},
	} {
		answer, conn := dialHandshake(t, b, "a", c.header, nil)
		if conn != nil || answer.StatusCode != http.StatusUnauthorized || answer.Header.Get(headerPeer) != "" {
			t.Errorf("%s: %v", name, answer)
		}
		if reason := <-b.refused; reason != c.reason {
			t.Errorf("%s: refused because %s", name, reason)
		}
	}
}

func TestWrongSecret(t *testing.T) {
	a, b := newNode(t, "a", withSecret("mine")).start(), newNode(t, "b", withSecret("yours")).start()
	a.setServers(b)
	if line := a.awaitLog("peer link is down"); line.Error != errUnproven.Error() {
		t.Errorf("logged %+v", line)
	}
	if err := a.Call(t.Context(), "b", "echo", nil, nil); !errors.Is(err, errUnproven) {
		t.Errorf("call: %v", err)
	}
	if reason := <-b.refused; reason != RefusedNoProof {
		t.Errorf("refused because %s", reason)
	}
}

// TestSecretAtOneEnd checks that a server with a secret and a server without one have no link, in
// either direction.
func TestSecretAtOneEnd(t *testing.T) {
	a, b := newNode(t, "a", withSecret("between us")).start(), newNode(t, "b").start()
	a.setServers(b)
	b.setServers(a)
	if line := a.awaitLog("peer link is down"); line.Error != errUnproven.Error() {
		t.Errorf("logged %+v", line)
	}
	if line := b.awaitLog("peer link is down"); !strings.Contains(line.Error, "401") {
		t.Errorf("logged %+v", line)
	}
	if reason := <-a.refused; reason != RefusedNoProof {
		t.Errorf("refused because %s", reason)
	}
}

// TestStrangerAtAddress checks that a stranger at the address of a server receives neither the
// secret nor a proof.
func TestStrangerAtAddress(t *testing.T) {
	for name, answer := range map[string]func(hello) hello{
		"nothing":              func(hello) hello { return hello{} },
		"no secret":            func(hello) hello { return hello{version: version} },
		"the dialer's nonce":   func(h hello) hello { return h },
		"a nonce and no proof": func(hello) hello { return hello{version: version, hasNonce: true} },
		"a proof of its own": func(h hello) hello {
			s, _ := auth.NewPeerSecret(strings.Repeat("x", auth.PeerSecretBytes))
			l := auth.PeerLink{Dialer: "a", Listener: "b", DialerNonce: h.nonce}
			return hello{version: version, hasNonce: true, proof: s.Prove(auth.PeerListener, l)}
		},
	} {
		t.Run(name, func(t *testing.T) { strangerAtAddress(t, answer) })
	}
}

func strangerAtAddress(t *testing.T, answer func(hello) hello) {
	a := newNode(t, "a", withSecret("between us")).start()
	received := make(chan []byte, 100)
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all bytes.Buffer
		_ = r.Write(&all)
		w.Header().Set(headerPeer, answer(readHello(r.Header)).String())
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		if _, message, err := conn.Read(r.Context()); err == nil {
			all.Write(message)
			t.Errorf("it received %x", message)
		}
		select {
		case received <- all.Bytes():
		default:
		}
	}))
	defer stranger.Close()
	a.SetServers([]registry.Server{{ID: "b", Host: stranger.Listener.Addr().String()}})
	if line := a.awaitLog("peer link is down"); line.Error != errUnproven.Error() {
		t.Errorf("logged %+v", line)
	}
	if text := <-received; bytes.Contains(text, []byte("between us")) || bytes.Contains(text, []byte("Authorization")) {
		t.Errorf("it received %s", text)
	}
	a.stop()
}

// TestUnfinishedHandshakes checks that connections without a proof are closed after handshakeTime,
// and that they do not block others.
func TestUnfinishedHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := make(chan string, maxHandshakes)
		o := Options{Self: func() string { return "b" }, Refused: func(reason, _ string) { refused <- reason }}
		withSecret("between us")(&o)
		b := New(o)
		p := servePipe(t, b.Handler().ServeHTTP)
		stranger := func() net.Conn {
			conn, _ := p.dial(t.Context(), "", "")
			head := "GET /peer/link?from=a&to=b HTTP/1.1\r\nHost: b\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
				"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
				headerPeer + ": " + hello{version: version, hasNonce: true}.String() + "\r\n\r\n"
			go func() { _, _ = io.WriteString(conn, head); _, _ = io.Copy(io.Discard, conn) }()
			synctest.Wait()
			return conn
		}
		for range maxHandshakes + 1 {
			defer stranger().Close()
		}
		if len(refused) != 1 || <-refused != RefusedLate {
			t.Errorf("%d of %d are refused, want only the oldest", len(refused), maxHandshakes+1)
		}
		<-time.After(handshakeTime)
		synctest.Wait()
		if len(refused) != maxHandshakes || len(b.handshakes.list) != 0 {
			t.Errorf("%d of %d are refused, %d are kept", len(refused), maxHandshakes, len(b.handshakes.list))
		}
		for len(refused) > 0 {
			if reason := <-refused; reason != RefusedLate {
				t.Errorf("refused because %s", reason)
			}
		}
		defer stranger().Close()
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := b.Run(ctx); err != nil || <-refused != RefusedLate {
			t.Errorf("the end of Run does not end handshakes: %v", err)
		}
		defer stranger().Close()
		if <-refused != RefusedLate {
			t.Error("a handshake began after the end of Run")
		}
	})
}

// TestHello checks that readHello ignores invalid parts of a header.
func TestHello(t *testing.T) {
	for text, want := range map[string]hello{
		"":                  {},
		"2":                 {version: "2"},
		"2 zz":              {version: "2"},
		"2 00":              {version: "2"},
		"  3   junk  junk ": {version: "3"},
	} {
		if got := readHello(http.Header{headerPeer: {text}}); got.String() != want.String() || got.hasNonce {
			t.Errorf("%q is read as %q", text, got)
		}
	}
	h := hello{version: version, nonce: auth.NewPeerNonce(), hasNonce: true, proof: []byte("proof")}
	if got := readHello(http.Header{headerPeer: {h.String()}}); got.String() != h.String() {
		t.Errorf("%q is read as %q", h, got)
	}
}
