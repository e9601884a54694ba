package attack

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"switchboard/broker/auth"
	"switchboard/internal/redispipe"
	"switchboard/registry"
)

// impostor is the id of a server that the attacker puts into the registry.
const impostor = "impostor-1"

// TestNoSecretForStrangers has an attacker that can write to Redis. Its listener is dialled like an
// instance. It gets nothing there by which it could pass for one.
func TestNoSecretForStrangers(t *testing.T) {
	secret := hex.EncodeToString([]byte(rand.Text() + rand.Text()))
	s := begin(t, newIssuer(t), "peer_secret: \""+secret+"\"", "")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	servers := registry.NewRedis(redispipe.New(redisServer.Client(t), redispipe.Options{}), registry.Options{})
	if err := servers.Join(s.ctx, registry.Server{ID: impostor, Host: l.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	live, err := servers.Servers(s.ctx)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(live, func(x registry.Server) bool { return x.ID != impostor })
	victim := live[i].ID

	var all []byte
	var heads [][]byte
	for _, answer := range []func(*testing.T, *siege, *http.Request) string{
		silence, asksForAPassword, sendsElsewhere, acceptsAnything, reflects, borrowsAProof,
	} {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		head, rest := captured(t, s, conn, answer)
		all, heads = append(append(all, head...), rest...), append(heads, head)
		if len(rest) > 0 {
			t.Errorf("after the request it said %q", rest)
		}
	}
	if bytes.Contains(all, []byte(secret)) || bytes.Contains(bytes.ToLower(all), []byte("authorization")) {
		t.Errorf("the secret was sent: %q", all)
	}
	known := map[string]bool{}
	for _, word := range regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(string(all), -1) {
		if known[word] {
			t.Errorf("%s was sent twice", word)
		}
		known[word] = true
	}
	if len(known) != len(heads) {
		t.Errorf("%d words for %d handshakes: more than nonces", len(known), len(heads))
	}
	replays(t, s, victim, heads, known)
	s.holds(t)
	if err := servers.Leave(s.ctx, impostor); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.Tail(0), secret) {
		t.Error("the secret is in the log")
	}
	s.end(t)
}

// captured answers a dialled connection, and takes all that is said on it: the request, and what
// follows.
func captured(t *testing.T, s *siege, conn net.Conn, answer func(*testing.T, *siege, *http.Request) string) (head, rest []byte) {
	t.Helper()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(hangUp))
	var said bytes.Buffer
	request, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &said)))
	if err != nil {
		t.Fatal(err)
	}
	head = bytes.Clone(said.Bytes())
	if text := answer(t, s, request); text != "" {
		_, _ = io.WriteString(conn, text)
	} else {
		return head, nil
	}
	rest, _ = io.ReadAll(conn)
	// A close frame of the WebSocket (RFC 6455 §5.5.1) is no secret.
	if len(rest) > 0 && rest[0] == 0x88 {
		rest = nil
	}
	return head, rest
}

func silence(*testing.T, *siege, *http.Request) string { return "" }

func asksForAPassword(*testing.T, *siege, *http.Request) string {
	return "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
}

func sendsElsewhere(_ *testing.T, _ *siege, r *http.Request) string {
	return "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://" + r.Host + "/elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
}

// switching accepts a WebSocket with that header of the handshake.
func switching(r *http.Request, hello string) string {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455 §4.2.2
	text := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n"
	if hello != "" {
		text += "Switchboard-Peer: " + hello + "\r\n"
	}
	return text + "\r\n"
}

func acceptsAnything(_ *testing.T, _ *siege, r *http.Request) string { return switching(r, "") }

func reflects(_ *testing.T, _ *siege, r *http.Request) string {
	nonce := r.Header.Get("Switchboard-Peer")
	return switching(r, nonce+" "+strings.TrimPrefix(nonce, "2 "))
}

// borrowsAProof opens a link to the victim with the victim's own nonce, and answers with the proof
// that it gets.
func borrowsAProof(t *testing.T, s *siege, r *http.Request) string {
	status, hello := linkTo(t, s, "from="+r.URL.Query().Get("to")+"&to="+r.URL.Query().Get("from"), r.Header.Get("Switchboard-Peer"))
	if status != http.StatusSwitchingProtocols {
		t.Errorf("the victim answers %d", status)
	}
	return switching(r, hello)
}

// linkTo begins a link to the victim, and hangs up.
func linkTo(t *testing.T, s *siege, query, hello string) (status int, answer string) {
	t.Helper()
	a, response := s.beginLink(t, query, hello)
	defer a.Close()
	return response.StatusCode, response.Header.Get("Switchboard-Peer")
}

func (s *siege) beginLink(t *testing.T, query, hello string) (*assailant, *http.Response) {
	t.Helper()
	a, err := s.dial(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.raw("GET /peer/link?" + query + " HTTP/1.1\r\nHost: broker\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSwitchboard-Peer: " + hello + "\r\n\r\n")
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, response
}

// replays tries all that was captured at the victim, as the request and as the proof.
func replays(t *testing.T, s *siege, victim string, heads [][]byte, known map[string]bool) {
	for _, head := range heads {
		a, err := s.dial(true, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.raw(string(head))
		response, err := http.ReadResponse(a.in, nil)
		if err != nil || response.StatusCode != http.StatusMisdirectedRequest { // it is for another server
			t.Errorf("a replayed request: %v, %v", response, err)
		}
		_ = a.Close()
	}
	for word := range known {
		proof, err := hex.DecodeString(word)
		if err != nil {
			t.Fatal(err)
		}
		for _, proof := range [][]byte{proof, make([]byte, len(auth.PeerNonce{}))} {
			a, response := s.beginLink(t, "from="+impostor+"&to="+victim, "2 "+word)
			if response.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("a handshake with a replayed nonce: %s", response.Status)
			}
			a.frames = true
			a.frame(ws.NewBinaryFrame(proof))
			if got := a.verdict(); got != fmt.Sprint(1008) {
				t.Errorf("a replayed proof: %s", got)
			}
			_ = a.Close()
		}
	}
}
