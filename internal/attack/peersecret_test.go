//go:build long

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

// impostor is the id of a server that the attacker adds to the registry.
const impostor = "impostor-1"

// TestPeerSecretDoesNotLeak simulates an attacker that can write to Redis and has registered its
// listener as an instance. Brokers dial that listener. They must send nothing that the attacker
// could use to impersonate an instance.
func TestPeerSecretDoesNotLeak(t *testing.T) {
	secret := hex.EncodeToString([]byte(rand.Text() + rand.Text()))
	s := newScenario(t, newIssuer(t), "peer_secret: \""+secret+"\"", "")
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
	server := live[i].ID

	var all []byte
	var heads [][]byte
	for _, answer := range []func(*testing.T, *scenario, *http.Request) string{
		staysSilent, asksForPassword, redirects, acceptsAnything, reflectsNonce, answersWithProofFromBroker,
	} {
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		head, rest := captureHandshake(t, s, conn, answer)
		all, heads = append(append(all, head...), rest...), append(heads, head)
		if len(rest) > 0 {
			t.Errorf("the broker sent %q after the request", rest)
		}
	}
	if bytes.Contains(all, []byte(secret)) || bytes.Contains(bytes.ToLower(all), []byte("authorization")) {
		t.Errorf("the secret was sent: %q", all)
	}
	nonces := map[string]bool{}
	for _, nonce := range regexp.MustCompile(`[0-9a-f]{64}`).FindAllString(string(all), -1) {
		if nonces[nonce] {
			t.Errorf("%s was sent twice", nonce)
		}
		nonces[nonce] = true
	}
	if len(nonces) != len(heads) {
		t.Errorf("%d hex strings in %d handshakes, want one nonce each", len(nonces), len(heads))
	}
	replayHandshakes(t, s, server, heads, nonces)
	s.checkService(t)
	if err := servers.Leave(s.ctx, impostor); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(s.Tail(0), secret) {
		t.Error("the secret is in the log")
	}
	s.finish(t)
}

// captureHandshake answers the request on conn. It returns the request head, and the bytes that the
// broker sends after it.
func captureHandshake(t *testing.T, s *scenario, conn net.Conn, answer func(*testing.T, *scenario, *http.Request) string) (head, rest []byte) {
	t.Helper()
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(closeTimeout))
	var received bytes.Buffer
	request, err := http.ReadRequest(bufio.NewReader(io.TeeReader(conn, &received)))
	if err != nil {
		t.Fatal(err)
	}
	head = bytes.Clone(received.Bytes())
	if text := answer(t, s, request); text != "" {
		_, _ = io.WriteString(conn, text)
	} else {
		return head, nil
	}
	rest, _ = io.ReadAll(conn)
	// A close frame of the WebSocket (RFC 6455 §5.5.1) is expected.
	if len(rest) > 0 && rest[0] == 0x88 {
		rest = nil
	}
	return head, rest
}

func staysSilent(*testing.T, *scenario, *http.Request) string { return "" }

func asksForPassword(*testing.T, *scenario, *http.Request) string {
	return "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
}

func redirects(_ *testing.T, _ *scenario, r *http.Request) string {
	return "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://" + r.Host + "/elsewhere\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
}

// acceptUpgrade returns the response that accepts a WebSocket, with hello in the header
// Switchboard-Peer.
func acceptUpgrade(r *http.Request, hello string) string {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11")) // RFC 6455 §4.2.2
	text := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: " +
		base64.StdEncoding.EncodeToString(sum[:]) + "\r\n"
	if hello != "" {
		text += "Switchboard-Peer: " + hello + "\r\n"
	}
	return text + "\r\n"
}

func acceptsAnything(_ *testing.T, _ *scenario, r *http.Request) string { return acceptUpgrade(r, "") }

func reflectsNonce(_ *testing.T, _ *scenario, r *http.Request) string {
	nonce := r.Header.Get("Switchboard-Peer")
	return acceptUpgrade(r, nonce+" "+strings.TrimPrefix(nonce, "2 "))
}

// answersWithProofFromBroker opens a link to the broker with the broker's own nonce, and answers
// with the proof from that link.
func answersWithProofFromBroker(t *testing.T, s *scenario, r *http.Request) string {
	status, hello := linkTo(t, s, "from="+r.URL.Query().Get("to")+"&to="+r.URL.Query().Get("from"), r.Header.Get("Switchboard-Peer"))
	if status != http.StatusSwitchingProtocols {
		t.Errorf("the broker answers %d", status)
	}
	return acceptUpgrade(r, hello)
}

// linkTo begins a link to the broker and closes it.
func linkTo(t *testing.T, s *scenario, query, hello string) (status int, answer string) {
	t.Helper()
	a, response := s.beginLink(t, query, hello)
	defer a.Close()
	return response.StatusCode, response.Header.Get("Switchboard-Peer")
}

func (s *scenario) beginLink(t *testing.T, query, hello string) (*attacker, *http.Response) {
	t.Helper()
	a, err := s.dial(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.sendRaw("GET /peer/link?" + query + " HTTP/1.1\r\nHost: broker\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSwitchboard-Peer: " + hello + "\r\n\r\n")
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a, response
}

// replayHandshakes sends the captured bytes to the broker, as requests and as proofs.
func replayHandshakes(t *testing.T, s *scenario, server string, heads [][]byte, nonces map[string]bool) {
	for _, head := range heads {
		a, err := s.dial(true, nil)
		if err != nil {
			t.Fatal(err)
		}
		a.sendRaw(string(head))
		response, err := http.ReadResponse(a.in, nil)
		if err != nil || response.StatusCode != http.StatusMisdirectedRequest { // the request names another server
			t.Errorf("a replayed request: %v, %v", response, err)
		}
		_ = a.Close()
	}
	for nonce := range nonces {
		decoded, err := hex.DecodeString(nonce)
		if err != nil {
			t.Fatal(err)
		}
		for _, proof := range [][]byte{decoded, make([]byte, len(auth.PeerNonce{}))} {
			a, response := s.beginLink(t, "from="+impostor+"&to="+server, "2 "+nonce)
			if response.StatusCode != http.StatusSwitchingProtocols {
				t.Fatalf("a handshake with a replayed nonce: %s", response.Status)
			}
			a.frames = true
			a.sendFrame(ws.NewBinaryFrame(proof))
			if got := a.outcome(); got != fmt.Sprint(1008) {
				t.Errorf("a replayed proof: %s", got)
			}
			_ = a.Close()
		}
	}
}
