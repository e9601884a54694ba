package broker_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// The limit is an hour, and the tests advance the clock of the sessions: real time does not matter.
const (
	slowTicks = 3600
	tolerated = slowTicks * 5 / 6 // ticks for which a client may stay unread
	fillCount = 64                // messages of 16 KiB: more than a small socket buffer takes at first
)

// slowClient reads only when the test calls it.
type slowClient struct {
	*testClient
	i      instance
	last   int64 // id of the last message pushed to its channel
	pushed int
}

// smallDialer connects with a small receive buffer. The small segment size keeps the broker's send
// buffer small too.
var smallDialer = net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
	return errors.Join(raw.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 1400),
			unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10))
	}), err)
}}

// smallDialers open a connection with small buffers over each of the three transports. They hold
// less than 1 MiB.
var smallDialers = map[string]func(*testing.T, instance) *testClient{
	"tcp": func(t *testing.T, i instance) *testClient { return dialLines(t, smallDialer, i.TCP) },
	"websocket on the loop": func(t *testing.T, i instance) *testClient {
		return dialWSOver(t, &http.Transport{DialContext: smallDialer.DialContext}, "ws://"+i.TCP+"/ws")
	},
	"websocket on net/http": func(t *testing.T, i instance) *testClient {
		return dialWSOver(t, &http.Transport{DialContext: smallDialer.DialContext}, "ws://"+i.HTTP+"/ws")
	},
}

// withSlowClient runs a test with a client on each of the three transports, each with a broker
// whose limit is slowTicks. The client's buffers are small.
func withSlowClient(t *testing.T, test func(c *slowClient)) {
	for name, dial := range smallDialers {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				o.Timing.Slow, o.Timing.Ping, o.Timing.Refresh = slowTicks*time.Second, 10*time.Hour, 10*time.Hour
			})
			c := &slowClient{testClient: dial(t, i), i: i}
			c.connect("slow", "")
			c.subscribe("news")
			test(c)
		})
	}
}

// fill pushes until the socket is full. The kernel's buffers grow while the client reads.
func (c *slowClient) fill() {
	c.t.Helper()
	for c.written() == c.pushed {
		for range fillCount {
			c.push(strings.Repeat("x", 16<<10))
		}
	}
}

// written waits until all messages are written or the socket is full. It returns how many were
// written.
func (c *slowClient) written() (delivered int) {
	c.t.Helper()
	unchanged := 0
	await.True(c.t, "the socket is full", func() bool {
		c.i.TickSessions(1) // updates the metric
		now := c.i.Delivered()
		if unchanged++; now != delivered {
			delivered, unchanged = now, 0
		}
		return unchanged == 20 || now == c.pushed
	})
	return delivered
}

func (c *slowClient) push(data string) {
	c.t.Helper()
	c.pushed++
	c.last = id(c.t, c.i.push(c.t, fmt.Sprintf(`{"channel":%q,"data":%q}`, "news", data))["id"])
}

// readAll reads all pushed messages.
func (c *slowClient) readAll() {
	c.t.Helper()
	for id(c.t, c.expect(object{"type": "message"})["id"]) != c.last {
	}
}

// subscribed reports whether the client's session still exists.
func (c *slowClient) subscribed() bool {
	_, ch := c.i.call(c.t, "GET", "/v1/channels/news", "")
	return id(c.t, ch["subscribers"]) == 1
}

// TestClientThatNeverReadsIsClosed: it is closed at the limit and not before, with a closing that
// it can still read.
func TestClientThatNeverReadsIsClosed(t *testing.T) {
	t.Parallel()
	withSlowClient(t, func(c *slowClient) {
		c.fill()
		c.i.TickSessions(tolerated)
		if !c.subscribed() {
			c.t.Fatalf("closed after %d s; the limit is %d s", tolerated, slowTicks)
		}
		await.True(c.t, "it is closed", func() bool {
			c.i.TickSessions(slowTicks / 10)
			return !c.subscribed()
		})
		var last object
		raw, err := c.read()
		for ; err == nil; raw, err = c.read() {
			last = decode(c.t, raw)
		}
		if last["type"] != "closing" || last["code"] != "slow" || last["reconnect"] != true {
			c.t.Errorf("the last message is %v", last)
		}
		framed := strings.Contains(c.t.Name(), "websocket")
		if framed && websocket.CloseStatus(err) != 4007 || !framed && !errors.Is(err, io.EOF) {
			c.t.Errorf("the connection ended with %v", err)
		}
	})
}

// TestClientThatReadsSometimesIsNotSlow: the client leaves its socket unread several times, each
// time for less than the limit.
func TestClientThatReadsSometimesIsNotSlow(t *testing.T) {
	t.Parallel()
	withSlowClient(t, func(c *slowClient) {
		for range 3 {
			c.fill()
			c.i.TickSessions(tolerated)
			c.readAll()
			c.push("after the backlog") // this write shows the session that the backlog is gone
			c.readAll()
		}
		if !c.subscribed() {
			c.t.Error("the client was closed, although it reads")
		}
	})
}
