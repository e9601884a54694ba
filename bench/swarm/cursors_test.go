package swarm

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// TestCursors runs the dialects with clients that send values against a script: the client
// subscribes, sends a value, and receives one.
func TestCursors(t *testing.T) {
	line := func(c *scriptConn, want string) {
		if got, err := c.in.ReadString('\n'); err != nil || !strings.Contains(got, want) {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
	for name, tc := range map[string]struct {
		dialect Sender
		script  func(c *scriptConn)
	}{
		"here": {NewSwitchboardCursors(false), func(c *scriptConn) {
			line(c, `"type":"connect"`)
			line(c, `"presence":true`)
			c.send(`{"type":"subscribed","channel":"news"}` + "\n" + `{"type":"join","channel":"news"}` + "\n")
			line(c, `{"type":"here","channel":"news","data":`+payload(1)+`}`)
			c.send(`{"type":"here","client":"b","channel":"news","data":` + payload(2) + "}\n")
		}},
		"state": {NewSwitchboardCursors(true), func(c *scriptConn) {
			line(c, `"type":"connect"`)
			line(c, `"state":true`)
			c.send(`{"type":"subscribed","channel":"news","id":5}` + "\n" + `{"type":"state","channel":"news","id":5,"first":true,"fields":{},"more":true}` + "\n")
			c.send(`{"type":"state","channel":"news","id":5,"fields":{}}` + "\n")
			line(c, `{"type":"publish","channel":"news","set":{"cursor/0":`+payload(1)+`}}`)
			c.send(`{"type":"published","channel":"news","id":6}` + "\n")
			c.send(`{"type":"message","channel":"news","id":7,"set":{"cursor/1":` + payload(2) + `},"by":"b"}` + "\n")
		}},
		"centrifuge": {&CentrifugeCursors{}, func(c *scriptConn) {
			c.upgrade("/connection/websocket")
			c.wantFrame(centrifugeConnectSubscribe + "}}")
			c.frame(`{"id":1,"connect":{}}` + "\n" + `{"id":2,"subscribe":{}}`)
			c.wantFrame(`{"id":11,"publish":{"channel":"news","data":` + payload(1) + `}}`)
			c.frame(`{"id":11,"publish":{}}` + "\n" + `{"push":{"channel":"news","pub":{"data":` + payload(2) + `,"info":{"client":"b"}}}}`)
		}},
		"centrifuge map": {&CentrifugeCursors{Map: true}, func(c *scriptConn) {
			c.upgrade("/connection/websocket")
			c.wantFrame(centrifugeConnectSubscribe + `,"type":1,"phase":2,"limit":1000}}`)
			c.frame(`{"id":1,"connect":{}}` + "\n" + `{"id":2,"subscribe":{"type":1}}`)
			c.wantFrame(`{"id":11,"publish":{"channel":"news","type":1,"key":"cursor/0","data":` + payload(1) + `}}`)
			c.frame(`{"push":{"channel":"news","pub":{"data":` + payload(2) + `,"info":{"client":"b"},"key":"cursor/1"}}}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			addr := serveOnce(t, func(conn net.Conn) {
				c := &scriptConn{t, conn, bufio.NewReader(conn)}
				tc.script(c)
				_, _ = io.Copy(io.Discard, c.in)
			})
			var got []string
			s, err := New(Options{
				Addr: addr, Dialect: tc.dialect, Connections: 1, Channels: []string{"news"}, Client: "x",
				Receive: func(subscriber int, n int64) { got = append(got, fmt.Sprint(subscriber, n)) },
			})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if err := s.Open(t.Context(), func() {}); err != nil {
				t.Fatal(err)
			}
			err = s.Send(0, []byte(payload(1)))
			if err == nil {
				err = s.Until(t.Context(), "receive", func() bool { return len(got) > 0 })
			}
			if err != nil || len(got) != 1 || got[0] != "0 2" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}
