package broker_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/internal/await"
	"switchboard/queue"
)

// caller is a backend with one connection.
type caller struct {
	t *testing.T
	c net.Conn
	r *bufio.Reader
}

func (i instance) caller(t *testing.T) *caller {
	t.Helper()
	c, err := net.Dial("tcp", i.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &caller{t, c, bufio.NewReader(c)}
}

func (c *caller) call(method, path, headers, body string) (*http.Response, string, error) {
	_, err := fmt.Fprintf(c.c, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", method, path, headers, len(body), body)
	if err != nil {
		return nil, "", err
	}
	r, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return nil, "", err
	}
	if r.StatusCode == http.StatusSwitchingProtocols {
		return r, "", nil
	}
	text, err := io.ReadAll(r.Body)
	return r, string(text), err
}

func (c *caller) want(status int, about, method, path, headers, body string) {
	c.t.Helper()
	r, text, err := c.call(method, path, headers, body)
	if err != nil {
		c.t.Fatalf("%s %s %q: %v", method, path, headers, err)
	}
	if r.StatusCode != status || !strings.Contains(text, about) {
		c.t.Errorf("%s %s %q: %d %s; want %d about %q", method, path, headers, r.StatusCode, text, status, about)
	}
}

const aPush = `{"channel":"a","data":1}`

// TestEachPushIsAuthorised: a connection that has pushed may not do more than any other.
func TestEachPushIsAuthorised(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		keys, err := auth.NewKeys([]string{"plain:" + keyOne, "plain:" + keyTwo})
		if err != nil {
			t.Fatal(err)
		}
		o.Access.Keys = keys
	})
	c := i.caller(t)
	for range 3 {
		c.want(200, `"id"`, "POST", "/v1/push", "Authorization: Bearer "+keyOne+"\r\n", aPush)
		c.want(200, `"id"`, "POST", "/v1/push", "authorization: bearer  "+keyTwo+" \r\n", aPush)
		c.want(401, "unknown API key", "POST", "/v1/push", "Authorization: Bearer three\r\n", aPush)
		c.want(401, "needs the header", "POST", "/v1/push", "", aPush)
		c.want(200, `"id"`, "POST", "/v1/push/batch", "Authorization: Bearer "+keyOne+"\r\n", `{"messages":[`+aPush+`]}`)
		c.want(401, "needs the header", "POST", "/v1/push/batch", "", `{"messages":[`+aPush+`]}`)
		c.want(401, "needs the header", "GET", "/v1/channels/a", "", "")
		c.want(200, `"messages"`, "GET", "/v1/channels/a", "Authorization: Bearer "+keyOne+"\r\n", "")
	}
}

// TestOtherPagesMayNotPushLater: nor behind a push of the machine's own, on the same connection.
func TestOtherPagesMayNotPushLater(t *testing.T) {
	c := start(t, memoryStore(queue.Options{}), nil).caller(t)
	for range 2 {
		c.want(200, `"id"`, "POST", "/v1/push", "", aPush)
		c.want(200, `"id"`, "POST", "/v1/push", "Content-Type: text/plain\r\n", aPush)
		c.want(403, "cross-origin", "POST", "/v1/push", "Origin: http://evil.example\r\n", aPush)
		c.want(403, "cross-origin", "POST", "/v1/push", "Sec-Fetch-Site: cross-site\r\n", aPush)
		c.want(200, `"id"`, "POST", "/v1/push", "Sec-Fetch-Site: same-origin\r\n", aPush)
		c.want(413, "16777216 bytes", "POST", "/v1/push", "", strings.Repeat(" ", 16<<20+1))
		c = (&instance{Addrs: broker.Addrs{HTTP: c.c.RemoteAddr().String()}}).caller(t) // a body too large ends the connection
	}
}

// TestWebSocketBehindPush: a connection that has pushed may become any other.
func TestWebSocketBehindPush(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	c := i.caller(t)
	c.want(200, `"id"`, "POST", "/v1/push", "", aPush)
	c.want(200, `"id"`, "POST", "/v1/push", "", aPush)
	c.want(101, "", "GET", "/ws?client=one", "Connection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "")
	head := make([]byte, 2)
	if _, err := io.ReadFull(c.r, head); err != nil || head[0] != 0x81 {
		t.Fatalf("%x, %v; want a text frame", head, err)
	}
	frame := make([]byte, head[1])
	if _, err := io.ReadFull(c.r, frame); err != nil || decode(t, frame)["type"] != "connected" {
		t.Errorf("%s, %v", frame, err)
	}
}

// TestPlacesComeBack: a connection that was taken over, or given back, leaves its place when it ends.
func TestPlacesComeBack(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Limits.Connections = 1 })
	for n := range 300 { // more than all places
		await.True(t, "there is a place", func() bool {
			c := i.caller(t)
			defer c.c.Close()
			for range 2 {
				if r, _, err := c.call("POST", "/v1/push", "", aPush); err != nil || r.StatusCode != http.StatusOK {
					return false
				}
			}
			if n%2 == 0 {
				_, _, err := c.call("GET", "/v1/servers", "", "")
				return err == nil
			}
			return true
		})
	}
}
