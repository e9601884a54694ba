package broker_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/auth"
	"switchboard/internal/await"
	"switchboard/queue"

	"github.com/gobwas/ws"
)

// caller is a backend on one connection.
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
	_ = c.SetDeadline(time.Now().Add(testTimeout))
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

// expect makes a call and checks the status and a part of the answer.
func (c *caller) expect(status int, contains, method, path, headers, body string) {
	c.t.Helper()
	r, text, err := c.call(method, path, headers, body)
	if err != nil {
		c.t.Fatalf("%s %s %q: %v", method, path, headers, err)
	}
	if r.StatusCode != status || !strings.Contains(text, contains) {
		c.t.Errorf("%s %s %q: %d %s; want %d with %q", method, path, headers, r.StatusCode, text, status, contains)
	}
}

const aPush = `{"channel":"a","data":1}`

// TestEachPushIsAuthorised: every call on a connection needs an API key, also after a push.
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
		c.expect(200, `"id"`, "POST", "/v1/push", "Authorization: Bearer "+keyOne+"\r\n", aPush)
		c.expect(200, `"id"`, "POST", "/v1/push", "authorization: bearer  "+keyTwo+" \r\n", aPush)
		c.expect(401, "unknown API key", "POST", "/v1/push", "Authorization: Bearer three\r\n", aPush)
		c.expect(401, "needs the header", "POST", "/v1/push", "", aPush)
		c.expect(200, `"id"`, "POST", "/v1/push/batch", "Authorization: Bearer "+keyOne+"\r\n", `{"messages":[`+aPush+`]}`)
		c.expect(401, "needs the header", "POST", "/v1/push/batch", "", `{"messages":[`+aPush+`]}`)
		c.expect(401, "needs the header", "GET", "/v1/channels/a", "", "")
		c.expect(200, `"messages"`, "GET", "/v1/channels/a", "Authorization: Bearer "+keyOne+"\r\n", "")
	}
}

// TestCrossOriginPushOnFastPush: fast push refuses pushes from pages of other origins too.
func TestCrossOriginPushOnFastPush(t *testing.T) {
	t.Parallel()
	c := start(t, memoryStore(queue.Options{}), nil).caller(t)
	for range 2 {
		c.expect(200, `"id"`, "POST", "/v1/push", "", aPush)
		c.expect(200, `"id"`, "POST", "/v1/push", "Content-Type: text/plain\r\n", aPush)
		c.expect(403, "cross-origin", "POST", "/v1/push", "Origin: http://evil.example\r\n", aPush)
		c.expect(403, "cross-origin", "POST", "/v1/push", "Sec-Fetch-Site: cross-site\r\n", aPush)
		c.expect(200, `"id"`, "POST", "/v1/push", "Sec-Fetch-Site: same-origin\r\n", aPush)
		c.expect(413, "16777216 bytes", "POST", "/v1/push", "", strings.Repeat(" ", 16<<20+1))
		c = (&instance{Addrs: broker.Addrs{HTTP: c.c.RemoteAddr().String()}}).caller(t) // a body too large ends the connection
	}
}

// TestWebSocketAfterPush: a connection that has pushed may still become a WebSocket.
func TestWebSocketAfterPush(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	c := i.caller(t)
	c.expect(200, `"id"`, "POST", "/v1/push", "", aPush)
	c.expect(200, `"id"`, "POST", "/v1/push", "", aPush)
	c.expect(101, "", "GET", "/ws?client=one", "Connection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "")
	header, err := ws.ReadHeader(c.r)
	if err != nil || header.OpCode != ws.OpText || header.Length > 1<<10 {
		t.Fatalf("%+v, %v; want a text frame", header, err)
	}
	payload := make([]byte, header.Length)
	if _, err := io.ReadFull(c.r, payload); err != nil || decode(t, payload)["type"] != "connected" {
		t.Errorf("%s, %v; want connected", payload, err)
	}
}

// TestConnectionCount: a connection that fast push has taken over, or returned to net/http, is no
// longer counted after it closes.
func TestConnectionCount(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Limits.Connections = 1 })
	for n := range 300 { // more than the limit and its reserve
		await.True(t, "a connection is accepted", func() bool {
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

// TestNoFastPush: with fast push switched off, net/http serves all pushes of a connection, with the
// same answers.
func TestNoFastPush(t *testing.T) {
	for _, off := range []bool{false, true} {
		i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Runtime.NoFastPush = off })
		c := i.caller(t)
		for range 3 {
			c.expect(200, `"id"`, "POST", "/v1/push", "", aPush)
			c.expect(200, `"id"`, "POST", "/v1/push/batch", "", `{"messages":[`+aPush+`]}`)
		}
		var stacks bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
			t.Fatal(err)
		}
		if fast := strings.Contains(stacks.String(), "fastpush.(*conn).serve"); fast == off {
			t.Errorf("switched off: %v; served by fast push: %v", off, fast)
		}
		_ = c.c.Close()
		if err := i.stop(); err != nil {
			t.Fatal(err)
		}
	}
}
