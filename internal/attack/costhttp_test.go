//go:build long

package attack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"switchboard/internal/ssetest"
)

// costlyCalls are the calls over HTTP that need no API key. In their cycles, a message is a method,
// a path and a body. $token and $renewal are those of the last answer that has some.
var costlyCalls = []costlyMessage{
	{name: "POST /v1/accounts, a guest", cycle: []string{"POST /v1/accounts {}"}},
	{name: "POST /v1/accounts, a name that is taken", cycle: []string{`POST /v1/accounts {"name":"amy","password":"a long secret"}`}},
	{name: "POST /v1/accounts/challenge", cycle: []string{`POST /v1/accounts/challenge {"message":"n,,n=amy,r=0123456789abcdef01234567"}`}},
	{name: "POST /v1/accounts/login", cycle: []string{`POST /v1/accounts/login {"name":"amy","password":"a long secret"}`}},
	{name: "POST /v1/accounts/login, no such name", cycle: []string{`POST /v1/accounts/login {"name":"x","password":"y"}`}},
	{name: "POST /v1/accounts/login, a wrong password", cycle: []string{`POST /v1/accounts/login {"name":"amy","password":"y"}`}},
	{name: "POST /v1/accounts/renew", cycle: []string{`POST /v1/accounts/renew {"renewal":"$renewal"}`}, first: []string{"POST /v1/accounts {}"}},
	{name: "POST /v1/accounts/renew, of no login", cycle: []string{`POST /v1/accounts/renew {"renewal":"x"}`}},
	{name: "POST /v1/accounts/logout", cycle: []string{
		`POST /v1/accounts/login {"name":"amy","password":"a long secret"}`, `POST /v1/accounts/logout {"renewal":"$renewal"}`,
	}},
	{name: "GET /v1/accounts/me", cycle: []string{"GET /v1/accounts/me $token"}, first: loginOfAmy},
	{name: "PATCH /v1/accounts/me", cycle: []string{`PATCH /v1/accounts/me $token {"nickname":"a"}`, `PATCH /v1/accounts/me $token {"nickname":"b"}`}, first: loginOfAmy},
	{name: "POST /v1/accounts/me/password, a wrong one", cycle: []string{`POST /v1/accounts/me/password $token {"password":"x","new":"another secret"}`}, first: loginOfAmy},
	{name: "POST /v1/accounts/me/delete, a wrong password", cycle: []string{`POST /v1/accounts/me/delete $token {"password":"x"}`}, first: loginOfAmy},
	{name: "POST /sse", cycle: []string{"POST /sse $last"}, prepare: withMessage},
	{name: "GET /sse", cycle: []string{"GET /sse?channel=open:old"}},
	{name: "GET /sse from an old position", cycle: []string{"GET /sse?channel=open:late&last_event_id=$last"}, prepare: oldPosition},
	{name: "OPTIONS /v1/accounts/login", cycle: []string{"OPTIONS /v1/accounts/login"}},
}

var loginOfAmy = []string{`POST /v1/accounts/login {"name":"amy","password":"a long secret"}`}

// call makes a call over HTTP on a connection of its own, and returns the code of an error. Of a
// stream it reads the events up to one of the type after # in the path, or to subscribed.
func (c *costlyClient) call(t *testing.T, s *scenario, message string) (code string) {
	t.Helper()
	method, rest, _ := strings.Cut(c.filled(message), " ")
	path, rest, _ := strings.Cut(rest, " ")
	path, last, _ := strings.Cut(path, "#")
	body, token := rest, ""
	if strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(rest, "{") {
		token, body, _ = strings.Cut(rest, " ")
	}
	head := method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	if token != "" {
		head += "Authorization: Bearer " + token + "\r\n"
	}
	if method == http.MethodPost || method == http.MethodPatch {
		head += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	} else {
		body = ""
	}
	a, err := s.dial(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	text := head + "\r\n" + body
	c.sent += len(text)
	a.sendRaw(text)
	defer func() { c.received += arrived(t, a.Conn) }()
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer response.Body.Close()
	if response.Header.Get("Content-Type") == "text/event-stream" {
		c.readStream(t, response.Body, cmp.Or(last, "subscribed"))
		return ""
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return c.readAnswer(t, response.StatusCode, answer)
}

// readAnswer keeps the values of an answer, and returns the code of an error.
func (c *costlyClient) readAnswer(t *testing.T, status int, answer []byte) (code string) {
	t.Helper()
	if status == http.StatusNoContent {
		return ""
	}
	var l struct {
		Token, Renewal string
		Error          struct{ Code string }
	}
	if err := json.Unmarshal(answer, &l); err != nil {
		t.Fatalf("%d %s: %v", status, answer, err)
	}
	c.keep("token", l.Token)
	c.keep("renewal", l.Renewal)
	return l.Error.Code
}

// readStream reads up to an event of a type, and keeps its id.
func (c *costlyClient) readStream(t *testing.T, body io.Reader, last string) {
	t.Helper()
	for in := ssetest.NewReader(body, ""); ; {
		e, err := in.Next()
		if err != nil {
			t.Fatalf("no %s: %v", last, err)
		}
		if e.Name == "refused" || e.Name == "closing" {
			t.Fatalf("got %s %s", e.Name, e.Data)
		}
		var event struct{ Client string }
		if e.Name == "connected" && json.Unmarshal([]byte(e.Data), &event) == nil {
			c.keep("client", event.Client)
		}
		if e.Name == last {
			c.keep("last", e.ID)
			return
		}
	}
}

// arrived returns how many bytes have arrived on a connection, also those that are not read yet.
func arrived(t *testing.T, conn net.Conn) (n int) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var info *unix.TCPInfo
	controlErr := raw.Control(func(fd uintptr) { info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err = cmp.Or(controlErr, err); err != nil {
		t.Fatal(err)
	}
	return int(info.Bytes_received)
}

// withMessage connects a client without a user, pushes a message to it and keeps the id that
// acknowledges it.
func withMessage(t *testing.T, s *scenario, c *costlyClient) {
	t.Helper()
	c.call(t, s, "GET /sse?channel=open:ack")
	if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"client":%q,"data":1}`, c.values["client"])); status != http.StatusOK {
		t.Fatal(status, answer)
	}
	c.call(t, s, "GET /sse?last_event_id=$last#message")
}

// oldPosition keeps a position that many messages follow.
func oldPosition(t *testing.T, s *scenario, c *costlyClient) {
	t.Helper()
	c.call(t, s, "GET /sse?channel=open:late")
	s.pushMany(t, "open:late")
}
