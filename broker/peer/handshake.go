package peer

import (
	"context"
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
	// headerPeer is the header of a handshake: the version, and with a secret the nonce, of the
	// listener also its proof.
	headerPeer = "Switchboard-Peer"
	version    = "2"

	// handshakeTime is how long a dialer may take from the request to its proof.
	handshakeTime = 5 * time.Second
	// maxHandshakes is how many dialers may owe a proof at once. One more, and the oldest is hung
	// up on: an instance needs a round trip, so a stranger who keeps them all busy keeps none out.
	maxHandshakes = 64
)

// Reasons why a server is refused, for Options.Refused.
const (
	// RefusedClear: the dialer sent the secret itself, as versions before 2 did.
	RefusedClear = "it sends the secret in clear text, as older versions do: upgrade it, and then change the secret"
	// RefusedSilent: the dialer does not begin a handshake.
	RefusedSilent = "it does not prove that it knows the secret"
	// RefusedProof: the dialer's proof is wrong.
	RefusedProof = "its secret is another"
	// RefusedLate: the dialer's proof did not come in time, or was crowded out.
	RefusedLate = "its proof did not come in time"
)

var errUnproven = errors.New("the server at this address does not prove that it knows the secret of the links")

// hello is what one end says of itself in headerPeer.
type hello struct {
	version string
	nonce   auth.PeerNonce
	proof   []byte
	signed  bool // nonce is there
}

func (h hello) String() string {
	text := h.version
	if h.signed {
		text += " " + hex.EncodeToString(h.nonce[:])
	}
	if h.proof != nil {
		text += " " + hex.EncodeToString(h.proof)
	}
	return text
}

// readHello reads the header. What cannot be read is as if it were not there.
func readHello(header http.Header) (h hello) {
	words := strings.Fields(header.Get(headerPeer))
	if len(words) > 0 {
		h.version = words[0]
	}
	if len(words) > 1 {
		nonce, err := hex.DecodeString(words[1])
		if h.signed = err == nil && len(nonce) == len(h.nonce); h.signed {
			copy(h.nonce[:], nonce)
		}
	}
	if h.signed && len(words) > 2 {
		if proof, err := hex.DecodeString(words[2]); err == nil {
			h.proof = proof
		}
	}
	return h
}

// greeting is the dialer's hello.
func (l *Links) greeting() hello {
	h := hello{version: version}
	if !l.opts.Secret.Open() {
		h.nonce, h.signed = auth.NewPeerNonce(), true
	}
	return h
}

// prove ends the handshake of a dialer: the listener must have proven the secret before it gets our
// proof.
func (l *Links) prove(ctx context.Context, conn *websocket.Conn, self, to string, ours, theirs hello) error {
	if l.opts.Secret.Open() {
		return nil
	}
	link := auth.PeerLink{Dialer: self, Listener: to, DialerNonce: ours.nonce, ListenerNonce: theirs.nonce}
	if theirs.version != version || !theirs.signed || !l.opts.Secret.Proves(auth.PeerListener, link, theirs.proof) {
		return errUnproven
	}
	return conn.Write(ctx, websocket.MessageBinary, l.opts.Secret.Prove(auth.PeerDialer, link))
}

// greet answers the hello of a request with ours, into header. It returns what the dialer's proof
// is about, or why the dialer is refused.
func (l *Links) greet(r *http.Request, from string, header http.Header) (link auth.PeerLink, refused string) {
	ours, theirs := hello{version: version}, readHello(r.Header)
	switch {
	case l.opts.Secret.Open():
		header.Set(headerPeer, ours.String())
		return link, ""
	case r.Header.Get("Authorization") != "":
		return link, RefusedClear
	case theirs.version != version || !theirs.signed:
		return link, RefusedSilent
	}
	link = auth.PeerLink{Dialer: from, Listener: l.opts.Self(), DialerNonce: theirs.nonce, ListenerNonce: auth.NewPeerNonce()}
	ours.nonce, ours.signed, ours.proof = link.ListenerNonce, true, l.opts.Secret.Prove(auth.PeerListener, link)
	header.Set(headerPeer, ours.String())
	return link, ""
}

// admit waits for the dialer's proof. The reason is "" when it is good.
func (l *Links) admit(ctx context.Context, conn *websocket.Conn, link auth.PeerLink) (refused string) {
	if l.opts.Secret.Open() {
		return ""
	}
	ctx, stop := context.WithTimeout(ctx, handshakeTime)
	defer stop()
	defer l.handshakes.begin(stop)()
	conn.SetReadLimit(int64(len(auth.PeerNonce{})))
	kind, proof, err := conn.Read(ctx)
	switch {
	case ctx.Err() != nil:
		return RefusedLate
	case err != nil || kind != websocket.MessageBinary:
		return RefusedSilent
	case !l.opts.Secret.Proves(auth.PeerDialer, link, proof):
		return RefusedProof
	}
	return ""
}

// handshakes are those whose proof has not come.
type handshakes struct {
	mu     sync.Mutex // guards the fields below
	list   []*handshake
	closed bool

	open sync.WaitGroup // one for each; added to under mu, while not closed
}

type handshake struct{ stop context.CancelFunc }

// begin counts a handshake until the returned function is called. stop must make it fail.
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
	h.open.Add(1)
	return func() { h.end(one) }
}

func (h *handshakes) end(one *handshake) {
	defer h.open.Done()
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.list, one); i >= 0 { // else it was crowded out
		h.list = slices.Delete(h.list, i, i+1)
	}
}

// close ends all and lets none begin again.
func (h *handshakes) close() {
	h.mu.Lock()
	h.closed = true
	for _, one := range h.list {
		one.stop()
	}
	h.mu.Unlock()
	h.open.Wait()
}
