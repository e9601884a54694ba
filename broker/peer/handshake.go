package peer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"switchboard/broker/auth"
)

const (
	// headerPeer is the header of a handshake. It holds the version and, with a secret, the nonce and
	// the listener's proof.
	headerPeer = "Switchboard-Peer"
	version    = "2"

	// handshakeTime is how long a dialer may take from the request to its proof.
	handshakeTime = 5 * time.Second
	// maxHandshakes is the most handshakes that wait for a proof. One more ends the oldest. Instances
	// send their proof within a round trip, so strangers that fill the list do not keep them out.
	maxHandshakes = 64
)

// Reasons why a server is refused, for Options.Refused.
const (
	// RefusedClear: the dialer sent the secret itself, as versions before 2 did.
	RefusedClear = "it sends the secret in clear text, as older versions do: upgrade it, and then change the secret"
	// RefusedNoProof: the dialer did not begin a handshake, or sent no proof.
	RefusedNoProof = "it does not prove that it knows the secret"
	// RefusedProof: the dialer's proof is wrong.
	RefusedProof = "it has another secret"
	// RefusedLate: the dialer's proof did not come in time, or too many newer handshakes began.
	RefusedLate = "its proof did not come in time"
)

var errUnproven = errors.New("the server at this address does not prove that it knows the secret of the links")

// hello is the content of headerPeer from one end.
type hello struct {
	version  string
	nonce    auth.PeerNonce
	proof    []byte
	hasNonce bool // whether nonce is set
}

func (h hello) String() string {
	text := h.version
	if h.hasNonce {
		text += " " + hex.EncodeToString(h.nonce[:])
	}
	if h.proof != nil {
		text += " " + hex.EncodeToString(h.proof)
	}
	return text
}

// readHello parses the header. Invalid parts are ignored.
func readHello(header http.Header) (h hello) {
	words := strings.Fields(header.Get(headerPeer))
	if len(words) > 0 {
		h.version = words[0]
	}
	if len(words) > 1 {
		nonce, err := hex.DecodeString(words[1])
		if h.hasNonce = err == nil && len(nonce) == len(h.nonce); h.hasNonce {
			copy(h.nonce[:], nonce)
		}
	}
	if h.hasNonce && len(words) > 2 {
		if proof, err := hex.DecodeString(words[2]); err == nil {
			h.proof = proof
		}
	}
	return h
}

// newHello returns the dialer's hello.
func (l *Links) newHello() hello {
	h := hello{version: version}
	if !l.opts.Secret.Open() {
		h.nonce, h.hasNonce = auth.NewPeerNonce(), true
	}
	return h
}

// sendProof ends the handshake of a dialer. It checks the listener's proof before it sends its own.
func (l *Links) sendProof(ctx context.Context, conn *websocket.Conn, self, to string, ours, theirs hello) error {
	if l.opts.Secret.Open() {
		return nil
	}
	link := auth.PeerLink{Dialer: self, Listener: to, DialerNonce: ours.nonce, ListenerNonce: theirs.nonce}
	if theirs.version != version || !theirs.hasNonce || !l.opts.Secret.Verify(auth.PeerListener, link, theirs.proof) {
		return errUnproven
	}
	return conn.Write(ctx, websocket.MessageBinary, l.opts.Secret.Prove(auth.PeerDialer, link))
}

// answerHello reads the dialer's hello from r and sets the listener's hello in header, the header
// of the response. It returns the link for checkProof, or why the dialer is refused.
func (l *Links) answerHello(r *http.Request, from string, header http.Header) (link auth.PeerLink, refused string) {
	ours, theirs := hello{version: version}, readHello(r.Header)
	switch {
	case l.opts.Secret.Open():
		header.Set(headerPeer, ours.String())
		return link, ""
	case r.Header.Get("Authorization") != "":
		return link, RefusedClear
	case theirs.version != version || !theirs.hasNonce:
		return link, RefusedNoProof
	}
	link = auth.PeerLink{Dialer: from, Listener: l.opts.Self(), DialerNonce: theirs.nonce, ListenerNonce: auth.NewPeerNonce()}
	ours.nonce, ours.hasNonce, ours.proof = link.ListenerNonce, true, l.opts.Secret.Prove(auth.PeerListener, link)
	header.Set(headerPeer, ours.String())
	return link, ""
}

// checkProof waits for the dialer's proof. It returns "" if the proof is valid, else the reason.
func (l *Links) checkProof(ctx context.Context, conn *websocket.Conn, link auth.PeerLink) (refused string) {
	if l.opts.Secret.Open() {
		return ""
	}
	// A dialer that has closed the connection may have ended the request's context, but is not late.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), handshakeTime)
	defer stop()
	defer l.handshakes.begin(stop)()
	conn.SetReadLimit(sha256.Size) // a proof is an HMAC-SHA256
	kind, proof, err := conn.Read(ctx)
	switch {
	case ctx.Err() != nil:
		return RefusedLate
	case err != nil || kind != websocket.MessageBinary:
		return RefusedNoProof
	case !l.opts.Secret.Verify(auth.PeerDialer, link, proof):
		return RefusedProof
	}
	return ""
}

// handshakes are the inbound handshakes that wait for a proof.
type handshakes struct {
	mu     sync.Mutex // guards the fields below
	list   []*handshake
	closed bool

	running sync.WaitGroup // counts handshakes; Add is called with mu held and closed false
}

type handshake struct{ stop context.CancelFunc }

// begin registers a handshake until end is called. stop must make the handshake fail.
func (h *handshakes) begin(stop context.CancelFunc) (end func()) {
	one := &handshake{stop}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		stop()
		return func() {}
	}
	if len(h.list) >= maxHandshakes {
		h.list[0].stop()
		h.list = slices.Delete(h.list, 0, 1)
	}
	h.list = append(h.list, one)
	h.running.Add(1)
	return func() { h.end(one) }
}

func (h *handshakes) end(one *handshake) {
	defer h.running.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.list, one); i >= 0 { // else begin has removed it
		h.list = slices.Delete(h.list, i, i+1)
	}
}

// close ends all handshakes and waits for them. No handshake begins after close.
func (h *handshakes) close() {
	h.mu.Lock()
	h.closed = true
	for _, one := range h.list {
		one.stop()
	}
	h.mu.Unlock()
	h.running.Wait()
}
