package broker_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/queue"
)

// closing is the end of a connection: a closing message, or an error.
type closing struct {
	Code      string
	Reconnect bool
	AfterMS   int64 `json:"after_ms"`
	err       error
}

// closings opens n connections. Each sends one line: format with the connection's number. closings
// calls connected after all have an answer, and returns the closings after all are closed.
func closings(t *testing.T, i instance, n int, format string, connected func()) []closing {
	t.Helper()
	list := make([]closing, n)
	var answered, closed sync.WaitGroup
	answered.Add(n)
	for k := range list {
		closed.Go(func() {
			markAnswered := sync.OnceFunc(answered.Done)
			defer markAnswered()
			conn, err := net.Dial("tcp", i.TCP)
			if err != nil {
				list[k].err = err
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(testTimeout))
			if _, list[k].err = fmt.Fprintf(conn, format+"\n", k); list[k].err != nil {
				return
			}
			for r := bufio.NewReader(conn); list[k].Code == ""; markAnswered() {
				raw, err := r.ReadBytes('\n')
				var e struct {
					Type string
					closing
				}
				if err == nil {
					err = json.Unmarshal(raw, &e)
				}
				if list[k].err = err; err != nil {
					return
				}
				if e.Type == "closing" {
					list[k] = e.closing
				}
			}
		})
	}
	answered.Wait()
	connected()
	closed.Wait()
	return list
}

// checkSpread checks that all clients were asked to reconnect elsewhere, spread evenly over the
// drain time.
func checkSpread(t *testing.T, list []closing, drain time.Duration) {
	t.Helper()
	var tenths [10]int
	for _, c := range list {
		at := c.AfterMS - 1
		if c.err != nil || c.Code != "draining" || !c.Reconnect || at < 0 || at >= drain.Milliseconds() {
			t.Fatalf("a client received %+v, want draining, and to reconnect within %v", c, drain)
		}
		tenths[at*10/drain.Milliseconds()]++
	}
	for _, n := range tenths {
		if n < len(list)*4/100 || n > len(list)/4 {
			t.Fatalf("of %d clients, %v reconnect within each tenth of the drain time; want an even spread", len(list), tenths)
		}
	}
}

func TestDrainSpreadsReconnects(t *testing.T) {
	t.Parallel()
	const drain = 8 * time.Second
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Timing.Drain = drain })
	list := closings(t, i, 1000, `{"type":"connect","client":"c%d"}`, func() {
		if err := i.stop(); err != nil {
			t.Error(err)
		}
	})
	checkSpread(t, list, drain)
}

// heldQueue delays the calls selected by holds until they are released.
type heldQueue struct {
	Queue
	holds   func(op string) bool
	arrived chan string // receives each delayed call
	release chan error  // an error fails one call; closing it lets all calls pass
}

// newHeldQueue returns a queue that delays the given operations: "unbind" or "push".
func newHeldQueue(q Queue, ops ...string) heldQueue {
	set := map[string]bool{}
	for _, op := range ops {
		set[op] = true
	}
	return heldQueue{q, func(op string) bool { return set[op] }, make(chan string, 100), make(chan error, 100)}
}

func (q heldQueue) hold(op string) error {
	if !q.holds(op) {
		return nil
	}
	q.arrived <- op
	return <-q.release
}

func (q heldQueue) Unbind(ctx context.Context, client string, generation int64) error {
	if err := q.hold("unbind"); err != nil {
		return err
	}
	return q.Queue.Unbind(context.WithoutCancel(ctx), client, generation)
}

func (q heldQueue) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	if push.Channel == "news" {
		if err := q.hold("push"); err != nil {
			return queue.Appended{}, err
		}
	}
	return q.Queue.AppendChannel(ctx, push)
}

func (q heldQueue) AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error) {
	if err := q.hold("push"); err != nil {
		return queue.ClientAppended{}, err
	}
	return q.Queue.AppendClient(ctx, push)
}

func (q heldQueue) AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended] {
	return oneByOne(ctx, pushes, q.AppendChannel)
}

func (q heldQueue) AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	return oneByOne(ctx, pushes, q.AppendClient)
}

// oneByOne makes the calls of a batch one after the other.
func oneByOne[P, T any](ctx context.Context, pushes []P, call func(context.Context, P) (T, error)) []queue.Outcome[T] {
	out := make([]queue.Outcome[T], len(pushes))
	for i, push := range pushes {
		out[i].Value, out[i].Err = call(ctx, push)
	}
	return out
}

// TestConnectDuringDrain: until the clients are unbound, the ports answer that the broker drains.
// The reconnects of refused clients are spread too.
func TestConnectDuringDrain(t *testing.T) {
	t.Parallel()
	const drain = time.Minute
	s := memoryStore(queue.Options{})
	q := newHeldQueue(s.queue, "unbind")
	s.queue = q
	i := start(t, s, func(o *broker.Options) { o.Timing.Drain = drain })
	i.awaitReady(t, http.StatusOK)
	p := dialers["tcp"](t, i)
	p.connect("phone", "")
	stopped := make(chan error)
	go func() { stopped <- i.stop() }()
	<-q.arrived
	i.awaitReady(t, http.StatusServiceUnavailable)
	if _, answer := i.call(t, "GET", "/readyz", ""); answer["reason"] != "draining" || answer["step"] != "draining" {
		t.Errorf("not ready because %v", answer)
	}
	if status, _ := i.call(t, "GET", "/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz is %d", status)
	}
	overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
		p := dial(i)
		_ = p.write(`{"type":"connect","client":"late"}`) // the broker may have closed the connection already
		received := p.untilClosed()
		if len(received) != 1 || received[0]["code"] != "draining" || received[0]["after_ms"] == nil {
			t.Errorf("received %v, want draining with after_ms", received)
		}
	})
	checkSpread(t, closings(t, i, 500, `{"type":"connect","client":"late%d"}`, func() {}), drain)
	close(q.release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestPushDuringDrain: a push that is under way when the drain begins is answered with its result.
func TestPushDuringDrain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body   string
		result error
		status int
		stored int
	}{
		"to a channel":         {`{"channel":"news","data":1}`, nil, 200, 1},
		"to a client":          {`{"client":"alice/phone","data":1}`, nil, 200, 1},
		"to a user":            {`{"user":"alice","data":1}`, nil, 200, 1},
		"to a channel, failed": {`{"channel":"news","data":1}`, errAnswerLost, 503, 0},
		"to a client, failed":  {`{"client":"alice/phone","data":1}`, errAnswerLost, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := redisStore(t, shared.Client(t), testBeat)
			beat := func(o *broker.Options) { o.Timing.Beat = testBeat }
			other := start(t, s, beat)
			other.awaitReady(t, http.StatusOK)
			q := newHeldQueue(s.queue, "push")
			s.queue = q
			i := start(t, s, beat)
			i.awaitReady(t, http.StatusOK)
			reader := dialers["tcp"](t, other)
			reader.connect("phone", "alice")
			reader.subscribe("news")
			here := dialers["tcp"](t, i)
			here.connect("here", "")

			answered := make(chan *http.Response, 1)
			go func() {
				resp, err := http.Post("http://"+i.HTTP+"/v1/push", "application/json", strings.NewReader(c.body))
				if err != nil {
					t.Error(err)
				}
				answered <- resp
			}()
			<-q.arrived
			stopped := make(chan error)
			go func() { stopped <- i.stop() }()
			here.expect(object{"type": "closing", "code": "draining"})
			await.True(t, "its port is closed", func() bool {
				conn, err := net.Dial("tcp", i.HTTP)
				if err == nil {
					_ = conn.Close()
				}
				return err != nil
			})
			if c.result != nil {
				q.release <- c.result
			}
			close(q.release)
			resp := <-answered
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			if resp == nil {
				t.FailNow()
			}
			defer resp.Body.Close()
			raw, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != c.status {
				t.Fatalf("the answer is %d %s (%v), want %d", resp.StatusCode, raw, err, c.status)
			}
			record, _, err := s.queue.Client(t.Context(), "alice/phone")
			if err != nil {
				t.Fatal(err)
			}
			size, err := s.queue.ChannelSize(t.Context(), "news")
			if err != nil {
				t.Fatal(err)
			}
			if record.Queued+size != c.stored {
				t.Errorf("%d and %d messages are stored, want %d in all", record.Queued, size, c.stored)
			}
			if c.stored > 0 {
				result := decode(t, raw)["results"].([]any)[0].(object)
				if list, ok := result["clients"].([]any); ok {
					result = list[0].(object)
				}
				reader.expect(object{"type": "message", "id": result["id"], "data": 1})
			}
		})
	}
}
