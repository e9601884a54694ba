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

// farewell is how a connection ended: with a closing message, or with an error.
type farewell struct {
	Code      string
	Reconnect bool
	AfterMS   int64 `json:"after_ms"`
	err       error
}

// dismissed dials n clients, which say hello where that is not empty, and gives their farewells when all
// have been told. The function that is called between is called when all are in.
func dismissed(t *testing.T, i instance, n int, hello string, allIn func()) []farewell {
	t.Helper()
	list := make([]farewell, n)
	var in, out sync.WaitGroup
	in.Add(n)
	for k := range list {
		out.Go(func() {
			first := sync.OnceFunc(in.Done)
			defer first()
			conn, err := net.Dial("tcp", i.TCP)
			if err != nil {
				list[k].err = err
				return
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(patience))
			if _, list[k].err = fmt.Fprintf(conn, hello+"\n", k); list[k].err != nil {
				return
			}
			for r := bufio.NewReader(conn); list[k].Code == ""; first() {
				raw, err := r.ReadBytes('\n')
				var e struct {
					Type string
					farewell
				}
				if err == nil {
					err = json.Unmarshal(raw, &e)
				}
				if list[k].err = err; err != nil {
					return
				}
				if e.Type == "closing" {
					list[k] = e.farewell
				}
			}
		})
	}
	in.Wait()
	allIn()
	out.Wait()
	return list
}

// checkSpread wants all sent elsewhere, evenly over the window.
func checkSpread(t *testing.T, list []farewell, window time.Duration) {
	t.Helper()
	var tenths [10]int
	for _, f := range list {
		at := f.AfterMS - 1
		if f.err != nil || f.Code != "draining" || !f.Reconnect || at < 0 || at >= window.Milliseconds() {
			t.Fatalf("a client heard %+v, want draining, to come back within %v", f, window)
		}
		tenths[at*10/window.Milliseconds()]++
	}
	for _, n := range tenths {
		if n < len(list)*4/100 || n > len(list)/4 {
			t.Fatalf("of %d clients %v come back within each tenth of the window", len(list), tenths)
		}
	}
}

func TestDrainSpreadsTheClients(t *testing.T) {
	const window = 8 * time.Second
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Timing.Drain = window })
	list := dismissed(t, i, 1000, `{"type":"connect","client":"c%d"}`, func() {
		if err := i.stop(); err != nil {
			t.Error(err)
		}
	})
	checkSpread(t, list, window)
}

// heldQueue holds the calls that it is told to hold until they are released.
type heldQueue struct {
	queue.Queue
	holds   func(op string) bool
	arrived chan string // the held ones
	release chan error  // closed, or an error for a call that is not to be made
}

func held(q queue.Queue, ops ...string) heldQueue {
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
	return one(ctx, pushes, q.AppendChannel)
}

func (q heldQueue) AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	return one(ctx, pushes, q.AppendClient)
}

// one makes one call after the other.
func one[P, T any](ctx context.Context, pushes []P, call func(context.Context, P) (T, error)) []queue.Outcome[T] {
	out := make([]queue.Outcome[T], len(pushes))
	for i, push := range pushes {
		out[i].Value, out[i].Err = call(ctx, push)
	}
	return out
}

// TestWhoComesDuringTheDrain: while the broker has something to do it says at its ports that it goes, and
// those whom it turns away do not come back as one wall.
func TestWhoComesDuringTheDrain(t *testing.T) {
	const window = time.Minute
	s := memoryStore(queue.Options{})
	q := held(s.queue, "unbind")
	s.queue = q
	i := start(t, s, func(o *broker.Options) { o.Timing.Drain = window })
	i.ready(t, http.StatusOK)
	p := ways["tcp"](t, i)
	p.connect("phone", "")
	stopped := make(chan error)
	go func() { stopped <- i.stop() }()
	<-q.arrived
	i.ready(t, http.StatusServiceUnavailable)
	if _, answer := i.call(t, "GET", "/readyz", ""); answer["reason"] != "draining" || answer["step"] != "draining" {
		t.Errorf("not ready because %v", answer)
	}
	if status, _ := i.call(t, "GET", "/healthz", ""); status != http.StatusOK {
		t.Errorf("healthz is %d", status)
	}
	overAll(t, func(t *testing.T, dial func(instance) *peer) {
		p := dial(i)
		_ = p.write(`{"type":"connect","client":"late"}`) // it may have been told already
		heard := p.ends()
		if len(heard) != 1 || heard[0]["code"] != "draining" || heard[0]["after_ms"] == nil {
			t.Errorf("heard %v, want draining with after_ms", heard)
		}
	})
	checkSpread(t, dismissed(t, i, 500, `{"type":"connect","client":"late%d"}`, func() {}), window)
	close(q.release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestPushUnderWayWhenTheDrainBegins is answered, with what became of it.
func TestPushUnderWayWhenTheDrainBegins(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		fate   error
		status int
		stored int
	}{
		"to a channel":         {`{"channel":"news","data":1}`, nil, 200, 1},
		"to a client":          {`{"client":"alice/phone","data":1}`, nil, 200, 1},
		"to a user":            {`{"user":"alice","data":1}`, nil, 200, 1},
		"to a channel, failed": {`{"channel":"news","data":1}`, errDeaf, 503, 0},
		"to a client, failed":  {`{"client":"alice/phone","data":1}`, errDeaf, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := redisStore(t, shared.Client(t), testBeat)
			beat := func(o *broker.Options) { o.Timing.Beat = testBeat }
			other := start(t, s, beat)
			other.ready(t, http.StatusOK)
			q := held(s.queue, "push")
			s.queue = q
			i := start(t, s, beat)
			i.ready(t, http.StatusOK)
			reader := ways["tcp"](t, other)
			reader.connect("phone", "alice")
			reader.subscribe("news")
			here := ways["tcp"](t, i)
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
			if c.fate != nil {
				q.release <- c.fate
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
