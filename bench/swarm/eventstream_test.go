package swarm

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

const streamHead = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n"

// streamEvent returns an event as the broker writes it.
func streamEvent(id, data string) string { return fmt.Sprintf("id:%s\ndata:%s\n\n", id, data) }

func streamMessage(n int64) string {
	return streamEvent(fmt.Sprint("m", n), fmt.Sprintf(`{"type":"message","channel":"news","id":%d,"data":%s}`, 100+n, payload(n)))
}

// TestEventStream runs the protocol against a script: the request, the events and a comment.
func TestEventStream(t *testing.T) {
	for name, tc := range map[string]struct {
		dialect EventStream
		request string
		ready   string // the event that confirms the subscription
		message func(n int64) string
	}{
		"channel": {
			EventStream{}, "GET /sse?channel=news&client=x0&secret=the+secret+of+x0 HTTP/1.1\r\n",
			"event:subscribed\n" + streamEvent("b", `{"type":"subscribed","channel":"news","id":100}`), streamMessage,
		},
		"queue of a user": {
			EventStream{Switchboard{Queue: true, Users: true}}, "GET /sse?ack=auto&client=x0&user=x0 HTTP/1.1\r\n", "",
			func(n int64) string { return strings.Replace(streamMessage(n), `"channel":"news",`, "", 1) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serveScripts(t, []func(*scriptConn){func(c *scriptConn) {
				if line, err := c.in.ReadString('\n'); err != nil || line != tc.request {
					t.Errorf("the request begins with %q, %v; want %q", line, err, tc.request)
				}
				c.send(streamHead + "retry:5\nevent:connected\n" + streamEvent("a", `{"type":"connected","client":"x0","id":1}`) + tc.ready)
				c.send(tc.message(1) + ":\n\n" + tc.message(2))
			}})
			tc.dialect.Addr = addr
			s := newSwarmOfOne(t, addr, &tc.dialect)
			err := s.Open(t.Context(), func() {})
			if err == nil {
				err = s.Until(t.Context(), "receive", func() bool { return s.received == 2 })
			}
			if err != nil {
				t.Fatal(err)
			}
			if wrong, faults := s.Verify([][]int64{{1, 2}}); wrong > 0 {
				t.Error(faults)
			}
		})
	}
}

// TestEventStreamRefuses checks that a refusal, the end of a stream and an event without an id are
// errors.
func TestEventStreamRefuses(t *testing.T) {
	for body, want := range map[string]string{
		"HTTP/1.1 401 Unauthorized":                             "401 Unauthorized",
		"HTTP/1.1 200 OK\r\nContent-Type: text/html":            "text/html",
		`data:{"type":"message","channel":"news"}`:              "has no id",
		"event:x\nid:1\n" + `data:{"type":"closing"}`:           "the server sent",
		"event:refused\nid:1\n" + `data:{"type":"error"}`:       "the server sent",
		"id:1\n" + `data:{"type":"gap","channel":"news","id":1`: "not JSON",
	} {
		d := &EventStream{}
		s := newSwarmOfOne(t, "127.0.0.1:1", d)
		if err := d.Handle(Connection{s, 0}, []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want something about %q", body, err, want)
		}
	}
	d := &EventStream{}
	s := newSwarmOfOne(t, "127.0.0.1:1", d)
	s.reconnecting = true
	if err := d.Subscribe(Connection{s, 0}); err == nil {
		t.Error("a stream resumes")
	}
}

// FuzzEventStream passes any bytes to the scanner, whole and in two parts. The frames must not
// depend on where the bytes are split.
func FuzzEventStream(f *testing.F) {
	f.Add([]byte(streamHead+":\n\n"+streamMessage(1)+"id:"), 30)
	f.Fuzz(func(t *testing.T, data []byte, cut int) {
		d := &EventStream{}
		whole, wholeRest, err := nextAll(d.NextFrame, data)
		if err != nil {
			return
		}
		cut = min(max(cut, 0), len(data))
		parts, rest, _ := nextAll(d.NextFrame, data[:cut])
		more, rest, err := nextAll(d.NextFrame, append(bytes.Clone(rest), data[cut:]...))
		if parts = append(parts, more...); err != nil || !bytes.Equal(rest, wholeRest) || !equalFrames(parts, whole) {
			t.Fatalf("cut at %d: %q rest %q, %v; whole: %q rest %q", cut, parts, rest, err, whole, wholeRest)
		}
		s := newSwarmOfOne(t, "127.0.0.1:1", d)
		for _, frame := range whole {
			_ = d.Handle(Connection{s, 0}, frame.Body)
		}
	})
}

func TestEventStreamTooLong(t *testing.T) {
	for _, end := range []string{"", "\n\n"} {
		if _, _, err := (&EventStream{}).NextFrame([]byte(strings.Repeat("x", maxMessage+1) + end)); !errors.Is(err, errTooLong) {
			t.Error(err)
		}
	}
}
