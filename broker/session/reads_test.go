package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// newReadHarness returns a harness with the data of fill, and a method that reads a state of 64
// KiB. The messages of a sender may make the store read rate bytes a second.
func newReadHarness(t *testing.T, rate int) (h *harness, refused map[string]int) {
	store := registry.NewMemory(registry.Options{})
	o, refused := countRefusals(session.Options{
		Presence: newPresenceOn(store), Requests: session.Requests{Queues: 1},
		Limits: session.Limits{UserRead: rate, Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Methods: map[string]session.Method{"read": func(ctx context.Context, _ session.Caller, _ json.RawMessage) (any, error) {
			o := h.queue.ReadStates(ctx, []queue.StateRead{{Channel: "large"}})[0]
			return nil, o.Err
		}},
	})
	h = newStateHarness(t, o)
	h.fill(store)
	h.tick(1)
	return h, refused
}

// Messages that the store may be read for, and others.
var (
	readingMessages = []string{
		`{"type":"request","ref":1,"method":"read"}`,
		`{"type":"history","channel":"long"}`,
		`{"type":"presence","channel":"watched"}`,
		`{"type":"state","ref":1,"channel":"large"}`,
		`{"type":"subscribe","channel":"long"}`,
		`{"type":"subscribe","channel":"$user:bob"}`,
		`{"type":"publish","channel":"large","set":{"x":1}}`,
	}
	otherMessages = []string{
		`{"type":"publish","channel":"a","data":1}`,
		`{"type":"unsubscribe","channel":"a"}`,
		`{"type":"ping"}`,
	}
)

// TestReadsOfASender checks for each kind of message that what the store reads for it is charged to
// all connections of its sender, and to no other sender, also if its connection has ended.
func TestReadsOfASender(t *testing.T) {
	const rate = 1000 // bytes a second, with a burst of 4000
	for name, messages := range map[string][]string{
		"a method":               {readingMessages[0]},
		"a history":              {readingMessages[1]},
		"a presence":             {readingMessages[2]},
		"a page of a state":      {readingMessages[3]},
		"a state":                {`{"type":"subscribe","channel":"large","state":true}`},
		"a watched presence":     {`{"type":"subscribe","channel":"watched","presence":true}`},
		"messages that are sent": {`{"type":"subscribe","channel":"long","after":1}`},
		"messages in vain":       {`{"type":"subscribe","channel":"long","after":1}`, `{"type":"unsubscribe","channel":"long"}`},
		"a refused change":       {`{"type":"publish","channel":"large","if":{"f0":1,"f1":1},"set":{"x":1}}`},
	} {
		for end, ended := range map[string]bool{"stays": false, "has ended": true} {
			if ended && strings.Contains(messages[0], "after") { // nothing more is read
				continue
			}
			t.Run(name+", the connection "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h, refused := newReadHarness(t, rate)
					sock := newSocket()
					r := h.Accept(h.loop, sock, []wire.Request{{Type: wire.TypeConnect, User: "amy"}})
					h.settle()
					h.onLoop(func() {
						for _, m := range messages {
							receive(r, "%s", m)
						}
						if ended {
							r.Closed()
						}
					})
					h.settle()
					h.wantSender("amy", "192.0.2.9:1", "rate_limited", 1)
					h.wantSender("bob", "192.0.2.1:1", "", 0)
					h.wantSender("", "192.0.2.1:1", "", 0)
					if refused["user_read"] == 0 {
						t.Errorf("counted %v", refused)
					}
				})
			})
		}
	}
}

// wantSender checks the answers to messages of a new connection: code is that of one that reads.
func (h *harness) wantSender(user, addr, code string, from int) {
	h.t.Helper()
	_, ask := h.sender(user, addr, "")
	for _, message := range append([]string{readingMessages[from]}, otherMessages...) {
		if got := ask("%s", message); got != code {
			h.t.Errorf("%s of %q: answered with %q, want %q", message, user, got, code)
		}
		code = ""
	}
}

// TestReadRefusals checks which messages are refused while a sender has read too much, and for how
// long.
func TestReadRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newReadHarness(t, 10_000)
		_, ask := h.sender("amy", "192.0.2.1:1", "")
		if code := ask("%s", readingMessages[0]); code != "" {
			t.Fatal(code)
		}
		for _, message := range readingMessages {
			if code := ask("%s", message); code != "rate_limited" {
				t.Errorf("%s: %q", message, code)
			}
		}
		for _, message := range otherMessages {
			if code := ask("%s", message); code != "" {
				t.Errorf("%s: %q", message, code)
			}
		}
		<-time.After(5 * time.Second) // some 66,000 bytes were read, and the burst was 40,000
		if code := ask("%s", readingMessages[0]); code != "" {
			t.Errorf("5 s later: %q", code)
		}
		h.wantClosed("")
	})
}

// TestReadsByReconnecting checks that clients which connect and subscribe in one write, from one
// address, do not read more than one that stays.
func TestReadsByReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newReadHarness(t, 900) // with a burst of 3,600; a message that is sent counts an eighth
		subscribed := 0
		for i := range 20 {
			channel := fmt.Sprint("c-", i)
			after := h.append(channel, "0")
			h.append(channel, `"`+strings.Repeat("x", 32_000)+`"`)
			sock := newSocket()
			sock.addr = fmt.Sprintf("192.0.2.7:%d", 1+i)
			h.onLoop(func() {
				h.Accept(h.loop, sock, []wire.Request{{Type: wire.TypeConnect}, {Type: wire.TypeSubscribe, Channel: channel, After: &after}})
			})
			h.settle()
			h.onLoop(func() { subscribed += strings.Count(types(sock.written), wire.TypeSubscribed) })
		}
		if subscribed != 1 {
			t.Errorf("%d subscribes were answered, in 20 connections", subscribed)
		}
	})
}
