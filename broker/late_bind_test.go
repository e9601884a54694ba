package broker_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/broker"
	"switchboard/internal/await"
)

// delayedLink is a proxy to Redis. One connection is delayed: the first one on which the broker
// sends the text. From then on its bytes stay in the proxy until release is closed, and then reach
// Redis, even if the broker has closed the connection meanwhile.
type delayedLink struct {
	net.Listener
	text, redis string
	delaying    atomic.Bool
	release     chan struct{}
	answered    chan struct{} // closed when Redis has answered what was delayed
	wg          sync.WaitGroup
}

func newDelayedLink(t *testing.T, redis, text string) *delayedLink {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &delayedLink{Listener: listener, text: text, redis: redis, release: make(chan struct{}), answered: make(chan struct{})}
	l.wg.Go(func() {
		for {
			down, err := listener.Accept()
			if err != nil {
				return
			}
			l.wg.Go(func() { l.relay(down) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.wg.Wait()
	})
	return l
}

// relay copies the bytes of one connection to Redis and back.
func (l *delayedLink) relay(down net.Conn) {
	defer func() { _ = down.Close() }()
	up, err := net.Dial("tcp", l.redis)
	if err != nil {
		return
	}
	defer func() { _ = up.Close() }()
	l.wg.Go(func() {
		_, _ = io.Copy(down, up)
		_ = down.Close()
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := down.Read(buf)
		if err != nil {
			return
		}
		delayed := bytes.Contains(buf[:n], []byte(l.text)) && l.delaying.CompareAndSwap(false, true)
		if delayed {
			<-l.release
			defer close(l.answered)
		}
		if _, err := up.Write(buf[:n]); err != nil {
			return
		}
		if delayed {
			_, _ = down.Read(buf) // the broker has closed the connection
			_ = up.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, up) // until Redis has executed everything
			return
		}
	}
}

// TestLateBind: the bind of a connection is on its way to Redis for so long that the broker gives
// up. The client connects to another broker, and stays there when Redis executes the first bind.
func TestLateBind(t *testing.T) {
	t.Parallel()
	rdb := shared.Client(t)
	s, prefix := redisStore(t, rdb, testBeat)
	change := func(o *broker.Options) { o.Timing.Beat = testBeat }
	b := start(t, s, change)

	link := newDelayedLink(t, shared.Addr, ":c_{alice/phone}")
	delayed := redis.NewClient(&redis.Options{Addr: link.Addr().String(), MaxRetries: -1, ReadTimeout: 500 * time.Millisecond, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = delayed.Close() })
	late := redisStoreAt(delayed, prefix, testBeat)
	a := start(t, late, change)
	await.True(t, "they see each other", func() bool { return a.Live(b.ID()) && b.Live(a.ID()) })
	dialers["tcp"](t, a).connect("tablet", "alice") // Redis knows the script now

	first := dialers["tcp"](t, a)
	first.send(`{"type":"connect","client":"phone","user":"alice"}`)
	await.True(t, "the bind is on its way", link.delaying.Load)
	if received := first.untilClosed(); len(received) == 0 || received[0]["code"] != "unavailable" {
		t.Fatalf("the first connection received %v", received)
	}
	second := dialers["tcp"](t, b)
	second.connect("phone", "alice")
	before := phoneKeys(t, rdb, prefix)
	close(link.release)
	<-link.answered
	if after := phoneKeys(t, rdb, prefix); after != before {
		t.Errorf("after the late bind the store has\n%s\nand before\n%s", after, before)
	}
	await.True(t, "the first broker no longer holds the phone", func() bool {
		held, err := rdb.SIsMember(t.Context(), prefix+"s_c_{"+a.ID()+"}", "alice/phone").Result()
		return err == nil && !held
	})
	pushed := a.push(t, `{"client":"alice/phone","data":1}`)
	second.expect(object{"type": "message", "channel": nil, "id": pushed["id"]})
}
