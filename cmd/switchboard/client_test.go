package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/certtest"
	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// asClient runs connect with an input, and returns its events without the first one, connected.
func (b broker) asClient(t *testing.T, code int, input string, args ...string) []event {
	t.Helper()
	r := testbed.ExecuteInput(t, []string{"SWITCHBOARD_URL=" + b.url}, input, binary, append([]string{"connect"}, args...)...)
	if r.Code != code {
		t.Errorf("%q: %+v, want %d", input, r, code)
	}
	return events(t, r.Stdout)
}

func events(t *testing.T, text string) (list []event) {
	t.Helper()
	for line := range strings.Lines(text) {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, e)
	}
	if len(list) == 0 || list[0].Type != "connected" {
		t.Fatalf("%q does not begin with connected", text)
	}
	return list[1:]
}

// text returns an event as JSON, without its ids.
func (e event) text(t *testing.T) string {
	t.Helper()
	e.ID = nil
	out, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func (l *lines) event(t *testing.T) (e event) {
	t.Helper()
	line := l.next(t)
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return e
}

// until returns the next event of a type.
func (l *lines) until(t *testing.T, kind string) event {
	t.Helper()
	for {
		if e := l.event(t); e.Type == kind {
			return e
		}
	}
}

// TestConnectCommands: each command has its answer, in the order of the lines.
func TestConnectCommands(t *testing.T) {
	b := startBroker(t, kitEnviron)
	got := b.asClient(t, exitOK, `
# a comment
publish news {"a": 1}
publish news two words
{"type":"publish","channel":"news","data":3,"ref":7}
history news
set doc title "x"
{"type":"publish","channel":"doc","add":{"n":2}}
fields doc
del doc title
subscribe doc state presence
here doc {"x":1}
presence doc
unsubscribe doc
call room.list
ping
quit
publish news 4
`, "--user", "alice", "--client", "phone")
	want := []string{
		`{"type":"published","channel":"news"}`, `{"type":"published","channel":"news"}`, `{"type":"published","ref":7,"channel":"news"}`,
		`{"type":"history","channel":"news","messages":[{"id":`,
		`{"type":"published","channel":"doc"}`, `{"type":"published","channel":"doc","fields":{"n":2}}`,
		`{"type":"state","channel":"doc","fields":{"n":{"id":`, `{"type":"published","channel":"doc"}`,
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i].text(t), strings.TrimSuffix(w, "}")) {
			t.Fatalf("event %d of %+v, want %s", i, got, w)
		}
	}
	var rest strings.Builder
	for _, e := range got[len(want):] {
		rest.WriteString(e.text(t) + "\n")
	}
	for _, w := range []string{
		`{"type":"subscribed","channel":"doc"}`, `"client":"alice/phone","user":"alice"`, `{"type":"unsubscribed","channel":"doc"}`,
		`{"type":"reply","data":{"rooms":[]`, `{"type":"pong"}`,
	} {
		if !strings.Contains(rest.String(), w) {
			t.Errorf("%s is missing in\n%s", w, &rest)
		}
	}
	if out := b.ok(t, "history", "news"); strings.Count(out, "\n") != 3 || !strings.Contains(out, "\t\"two words\"\tby alice/phone\n") {
		t.Errorf("the channel has %q", out)
	}
}

// TestConnectEcho: a client that publishes without an echo does not receive its message.
func TestConnectEcho(t *testing.T) {
	b := startBroker(t, nil)
	for _, e := range b.asClient(t, exitOK, `subscribe news
{"type":"publish","channel":"news","data":"mine","echo":false}
publish news "all"
`, "--user", "alice", "--count", "1") {
		if e.Type == "message" && string(e.Data) != `"all"` {
			t.Errorf("received %s", e.text(t))
		}
	}
}

// TestConnectErrors: a refusal is an event, and the exit code at the end of the input.
func TestConnectErrors(t *testing.T) {
	b := startBroker(t, nil)
	got := b.asClient(t, exitUsage, "pblish news 1\n{\"type\":\"publish\",\"chanel\":\"news\"}\npublish a\u0001b 1\npublish news 1\n", "--user", "alice")
	if len(got) != 4 || got[3].Type != "published" {
		t.Fatalf("%+v", got)
	}
	for i, want := range []string{"did you mean publish?", `unknown field \"chanel\"`, "channel"} {
		if text := got[i].text(t); got[i].Type != "error" || !strings.Contains(text, want) {
			t.Errorf("%s, want %q", text, want)
		}
	}
	if got := b.asClient(t, exitConflict, `{"type":"publish","channel":"c","set":{"a":1},"if":{"a":5},"ref":9}`, "--user", "alice"); len(got) != 1 || got[0].Code != "conflict" || string(must(json.Marshal(got[0].Ref))) != "9" {
		t.Errorf("%+v", got)
	}
	b.steps(t, []step{
		{line: "connect --token-file /nowhere", code: exitFailed, want: "the file of the token"},
		{line: "connect --user a␣b", code: exitUsage, want: "user"},
	})
	r := broker{url: "http://127.0.0.1:1"}.cli(t, "connect", "--timeout=300ms")
	if r.Code != exitUnavailable || !strings.Contains(r.Stderr, "no connection within 300ms") {
		t.Errorf("without a broker: %+v", r)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestConnectListens: connect prints messages until it is interrupted, or as many as --count says.
func TestConnectListens(t *testing.T) {
	b := startBroker(t, nil)
	b.ok(t, "push", "news", "1")
	l := follow(t, []string{"SWITCHBOARD_URL=" + b.url}, "connect", "news", "--after=0", "--presence", "--state", "--user=alice", "--client=phone")
	if m := l.until(t, "message"); m.Channel != "news" || string(m.Data) != "1" {
		t.Errorf("%+v", m)
	}
	b.ok(t, "push", "news", "--set", "turn=amy")
	if m := l.until(t, "message"); string(m.Set["turn"]) != `"amy"` {
		t.Errorf("%+v", m)
	}
	if out := b.ok(t, "who", "--channel", "news"); !strings.Contains(out, "alice/phone") {
		t.Errorf("%q", out)
	}
	feed(t, []string{"SWITCHBOARD_URL=" + b.url}, "subscribe news presence\nhere news {\"x\":1}\n", "connect", "--user=bob", "--client=tab")
	if h := l.until(t, "here"); h.Client != "bob/tab" || string(h.Data) != `{"x":1}` {
		t.Errorf("%+v", h)
	}
	b.ok(t, "push", "--client", "alice/phone", "2")
	if m := l.until(t, "message"); m.Channel != "" || string(m.Data) != "2" {
		t.Errorf("its queue: %+v", m)
	}
	if code := l.interrupt(t); code != exitOK {
		t.Errorf("%d, %s", code, l.errors())
	}
	if out := b.ok(t, "queue", "alice/phone"); out != "" {
		t.Errorf("not acknowledged: %q", out)
	}
	if got := b.asClient(t, exitOK, "", "news", "--after=0", "--count=1"); got[len(got)-1].Type != "message" {
		t.Errorf("%+v", got)
	}
}

// TestConnectTokens: a broker with token keys admits connect with a token, over TCP and over TLS,
// too.
func TestConnectTokens(t *testing.T) {
	dir := t.TempDir()
	secret, token := filepath.Join(dir, "secret"), filepath.Join(dir, "token")
	write(t, secret, strings.Repeat("s", 32)+"\n")
	write(t, filepath.Join(dir, "b.yaml"), "namespaces:\n  \"chat:*\": {subscribe: users, publish: grant}\n")
	authority := certtest.New(t)
	pair := authority.Pair()
	b := startBroker(t, []string{
		"SWITCHBOARD_AUTH_HS256_SECRET_FILE=" + secret, "SWITCHBOARD_TLS_CERT_FILE=" + pair.Cert, "SWITCHBOARD_TLS_KEY_FILE=" + pair.Key,
	}, "--config", filepath.Join(dir, "b.yaml"), "--tcp=127.0.0.1:0")
	b.url = "https" + strings.TrimPrefix(b.url, "http")
	issued := testbed.Execute(t, nil, binary, "token", "issue", "--user=alice", "--grant=chat:1=pub", "--signing-key", secret)
	write(t, token, issued.Stdout)
	ca := "--ca-file=" + authority.File
	run := func(code int, environ []string, args ...string) testbed.Result {
		t.Helper()
		environ = append(environ, "SWITCHBOARD_URL="+b.url)
		r := testbed.ExecuteInput(t, environ, "subscribe chat:1\nrefresh\npublish chat:1 1\nquit\n", binary, append([]string{"connect", ca}, args...)...)
		if r.Code != code {
			t.Errorf("%v: %+v, want %d", args, r, code)
		}
		return r
	}
	for _, r := range []testbed.Result{
		run(exitOK, nil, "--token-file", token),
		run(exitOK, []string{"SWITCHBOARD_TOKEN=" + strings.TrimSpace(issued.Stdout)}),
		run(exitOK, nil, "--token-file", token, "--tcp", "--tcp-address", b.tcp),
	} {
		types := map[string]bool{}
		for _, e := range events(t, r.Stdout) {
			types[e.Type] = true
		}
		if !types["subscribed"] || !types["refreshed"] || !types["published"] {
			t.Errorf("%+v", r)
		}
	}
	if r := run(exitForbidden, nil, "--signing-key", secret, "--user", "bob"); !strings.Contains(r.Stdout, `"code":"forbidden"`) {
		t.Errorf("without the grant: %+v", r)
	}
	if r := run(exitForbidden, nil); !strings.Contains(r.Stderr, "--token-file") {
		t.Errorf("without a token: %+v", r)
	}
	if r := run(exitUnavailable, nil, "--token-file", token, "--ca-file", certtest.New(t).File, "--timeout=1s"); !strings.Contains(r.Stderr, "certificate") {
		t.Errorf("another authority: %+v", r)
	}
}

// TestConnectIgnoredToken: the event says that an open broker has not read the token.
func TestConnectIgnoredToken(t *testing.T) {
	b := startBroker(t, nil)
	for token, want := range map[string]bool{"a.b.c": true, "": false} {
		r := testbed.ExecuteInput(t, []string{"SWITCHBOARD_URL=" + b.url, "SWITCHBOARD_TOKEN=" + token}, "quit\n", binary, "connect")
		if events(t, r.Stdout); strings.Contains(r.Stdout, `"token_ignored":true`) != want {
			t.Errorf("%q: %+v", token, r)
		}
	}
}

// TestConnectSurvivesBroker: connect goes on at the second address when the first broker is killed,
// and misses no message.
func TestConnectSurvivesBroker(t *testing.T) {
	server := redistest.Start(t)
	environ := []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_PEER_SECRET=0123456789abcdef0123456789abcdef"}
	brokers := map[string]broker{}
	urls := []string{}
	for range 2 {
		b := startBroker(t, environ)
		brokers[b.url] = b
		urls = append(urls, b.url)
	}
	l := follow(t, []string{"SWITCHBOARD_URL=" + strings.Join(urls, ",")}, "connect", "news", "--user=alice", "--client=phone")
	first := l.until(t, "connected")
	l.until(t, "subscribed")
	var other broker
	for url, b := range brokers {
		if strings.Contains(first.URL, strings.TrimPrefix(url, "http")) {
			b.Interrupt(syscall.SIGKILL)
		} else {
			other = b
		}
	}
	for n := range 3 {
		other.ok(t, "push", "news", fmt.Sprint(n))
	}
	for n := range 3 {
		if m := l.until(t, "message"); string(m.Data) != fmt.Sprint(n) {
			t.Fatalf("%+v, want %d", m, n)
		}
	}
}
