package broker_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
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

// With hours for limits the time that a test takes does not matter: it passes hours by hand.
const (
	slowTicks = 3600
	fewer     = slowTicks * 5 / 6
	unread    = 64 // messages of 16 KiB at a time: more than a narrow socket takes at first
)

// slowClient is one that reads when it is told to.
type slowClient struct {
	*peer
	i      instance
	last   int64 // id of the last message pushed to its channel
	pushed int
}

// overSlow has a client on each of the three ways in, with a broker of its own whose limit is slowTicks.
// The buffers between the two ends are small: with a small segment the sender's do not grow much either.
func overSlow(t *testing.T, test func(c *slowClient)) {
	small := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) {
			err = errors.Join(unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, 1400),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 16<<10))
		}), err)
	}}
	for name, dial := range map[string]func(*testing.T, instance) *peer{
		"tcp": func(t *testing.T, i instance) *peer { return dialLines(t, small, i.TCP) },
		"websocket on the loop": func(t *testing.T, i instance) *peer {
			return dialWSBy(t, &http.Transport{DialContext: small.DialContext}, "ws://"+i.TCP+"/ws")
		},
		"websocket on net/http": func(t *testing.T, i instance) *peer {
			return dialWSBy(t, &http.Transport{DialContext: small.DialContext}, "ws://"+i.HTTP+"/ws")
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
				o.Timing.Slow, o.Timing.Ping, o.Timing.Refresh = slowTicks*time.Second, 10*time.Hour, 10*time.Hour
			})
			c := &slowClient{peer: dial(t, i), i: i}
			c.connect("slow", "")
			c.subscribe("news")
			test(c)
		})
	}
}

// fill pushes until the socket takes no more: it is backed up from then on. What the system keeps for a
// client grows while that one reads.
func (c *slowClient) fill() {
	c.t.Helper()
	for c.settled() == c.pushed {
		for range unread {
			c.push(strings.Repeat("x", 16<<10))
		}
	}
}

// settled is how many messages were written when no more are.
func (c *slowClient) settled() (delivered int) {
	c.t.Helper()
	still := 0
	await.True(c.t, "the socket takes no more", func() bool {
		c.i.TickSessions(1) // counts what is delivered
		now := c.delivered()
		if still++; now != delivered {
			delivered, still = now, 0
		}
		return still == 20 || now == c.pushed
	})
	return delivered
}

// delivered is the count of messages that were written to sockets.
func (c *slowClient) delivered() int {
	c.t.Helper()
	resp, err := http.Get("http://" + c.i.HTTP + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	_, count, _ := strings.Cut(string(text), "\nswitchboard_deliveries_total ")
	count, _, _ = strings.Cut(count, "\n")
	n, err := strconv.Atoi(count)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c *slowClient) push(data string) {
	c.t.Helper()
	c.pushed++
	c.last = id(c.t, c.i.push(c.t, fmt.Sprintf(`{"channel":%q,"data":%q}`, "news", data))["id"])
}

// drain reads all that was pushed.
func (c *slowClient) drain() {
	c.t.Helper()
	for id(c.t, c.expect(object{"type": "message"})["id"]) != c.last {
	}
}

// stays says whether the client's session is there.
func (c *slowClient) stays() bool {
	_, ch := c.i.call(c.t, "GET", "/v1/channels/news", "")
	return id(c.t, ch["subscribers"]) == 1
}

// TestWhoNeverReadsIsClosedAsSlow has a client that reads nothing: not before the limit, and then with
// the reason, which it can still read, and the request to come back.
func TestWhoNeverReadsIsClosedAsSlow(t *testing.T) {
	overSlow(t, func(c *slowClient) {
		c.fill()
		c.i.TickSessions(fewer)
		if !c.stays() {
			c.t.Fatalf("it is closed after %d s of %d", fewer, slowTicks)
		}
		await.True(c.t, "it is closed", func() bool {
			c.i.TickSessions(slowTicks / 10)
			return !c.stays()
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
			c.t.Errorf("it ends with: %v", err)
		}
	})
}

// TestWhoReadsNowAndThenIsNotSlow lets the backlog grow old again and again, but never as old as the limit.
func TestWhoReadsNowAndThenIsNotSlow(t *testing.T) {
	overSlow(t, func(c *slowClient) {
		for range 3 {
			c.fill()
			c.i.TickSessions(fewer)
			c.drain()
			c.push("it is written to again") // so its backlog was seen to be gone
			c.drain()
		}
		if !c.stays() {
			c.t.Error("it is closed")
		}
	})
}
