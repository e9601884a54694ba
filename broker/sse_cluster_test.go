package broker_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/ssetest"
	"switchboard/queue"
)

// cutStream is a client that cuts its streams after some bytes. It records the last event id and
// the messages. A cut within an event loses only that event.
type cutStream struct {
	query string
	last  string
	got   map[string][]int // the data of messages, by channel; "" is the client queue
	gaps  int
}

// run reads one stream of a broker, up to limit bytes or for streamTime. It returns an error if the
// broker cannot be reached.
func (c *cutStream) run(addr string, limit int) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(streamTime)) // the broker may send less than limit
	header := ""
	if c.last != "" {
		header = "Last-Event-ID: " + c.last + "\r\n"
	}
	if _, err := fmt.Fprintf(conn, "GET /sse?%s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", c.query, header); err != nil {
		return err
	}
	head, err := readHead(conn)
	if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200") {
		return fmt.Errorf("%s: %w", head, errors.Join(err, errNoStream))
	}
	r := ssetest.NewReader(io.LimitReader(conn, int64(limit)), c.last)
	for {
		e, err := r.Next()
		if err != nil {
			return nil
		}
		if e.Comment {
			continue
		}
		c.last = e.ID
		switch e.Name {
		case "message":
			var n int
			var channel string
			if at := strings.Index(e.Data, `"channel":"`); at >= 0 {
				channel, _, _ = strings.Cut(e.Data[at+len(`"channel":"`):], `"`)
			}
			_, _ = fmt.Sscanf(e.Data[strings.Index(e.Data, `"data":`)+len(`"data":`):], "%d", &n)
			c.got[channel] = append(c.got[channel], n)
		case "gap":
			c.gaps++
		}
	}
}

// streamTime is the maximum time that a stream lasts.
const streamTime = 500 * time.Millisecond

var errNoStream = errors.New("no stream")

// readHead reads the head of a response, byte by byte, so that nothing of the body is lost.
func readHead(r io.Reader) (string, error) {
	var head []byte
	for b := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); {
		if _, err := r.Read(b); err != nil {
			return string(head), err
		}
		head = append(head, b...)
	}
	return string(head), nil
}

// complete reports whether each queue has all messages up to n.
func (c *cutStream) complete(n int) bool {
	for _, channel := range []string{"", "one", "two"} {
		if len(c.got[channel]) < n {
			return false
		}
	}
	return true
}

// TestSSEDeliversOnce cuts the streams of several clients after random numbers of bytes. The
// clients reconnect to any broker, while brokers are drained and replaced. Each client gets each
// message once, in order.
func TestSSEDeliversOnce(t *testing.T) {
	t.Parallel()
	const clients, messages = 4, 150
	s, _ := redisStore(t, shared.Client(t), testBeat)
	var mu sync.Mutex // guards list
	list := startThree(t, s, nil)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
	pick := func(r *rand.Rand) instance {
		mu.Lock()
		defer mu.Unlock()
		return list[r.IntN(len(list))]
	}
	pushed := make(chan struct{})
	var running sync.WaitGroup
	all := make([]*cutStream, clients)
	ready := make(chan struct{}, clients)
	for k := range all {
		c := &cutStream{
			query: fmt.Sprintf("channel=one&channel=two&user=u&client=c%d", k), got: map[string][]int{},
		}
		all[k] = c
		running.Go(func() {
			r := random(uint64(k))
			// Repeat the first stream until it has read the answers to both subscribes: then the last id
			// has positions.
			for {
				if err := c.run(pick(r).HTTP, 900); err == nil && c.last != "" {
					break
				}
			}
			ready <- struct{}{}
			for deadline := time.Now().Add(testTimeout); !c.complete(messages) && time.Now().Before(deadline); {
				_ = c.run(pick(r).HTTP, 300+r.IntN(6000))
			}
		})
	}
	running.Go(func() {
		defer close(pushed)
		for range clients {
			<-ready
		}
		r := random(100)
		for n := range messages {
			body := fmt.Sprintf(`{"messages":[{"channel":"one","data":%d},{"channel":"two","data":%d},{"user":"u","data":%d}]}`, n, n, n)
			for try := 0; ; try++ {
				resp, err := http.Post("http://"+pick(r).HTTP+"/v1/push/batch", "application/json", strings.NewReader(body))
				if err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				if err == nil && resp.StatusCode == http.StatusOK {
					break
				}
				if try == 10 {
					t.Errorf("message %d cannot be pushed: %v", n, err)
					return
				}
			}
			if n%50 == 25 { // replace a broker
				mu.Lock()
				old := list[0]
				list = slices.Clone(list[1:])
				mu.Unlock()
				if err := old.stop(); err != nil {
					t.Error(err)
				}
				next := start(t, s, func(o *broker.Options) { o.Name, o.Timing.Beat = fmt.Sprint("n", n), testBeat })
				next.awaitReady(t, http.StatusOK)
				mu.Lock()
				list = append(list, next)
				mu.Unlock()
			}
		}
	})
	running.Wait()
	<-pushed
	for k, c := range all {
		for _, channel := range []string{"", "one", "two"} {
			got := c.got[channel]
			for n := range got {
				if got[n] != n {
					t.Fatalf("client %d, queue %q: message %d is %d; around: %v", k, channel, n, got[n], got[max(0, n-3):min(len(got), n+4)])
				}
			}
			if len(got) != messages {
				t.Errorf("client %d, queue %q: %d messages, want %d", k, channel, len(got), messages)
			}
		}
		if c.gaps > 0 {
			t.Errorf("client %d was sent %d gaps", k, c.gaps)
		}
	}
}

// postAck acknowledges at a broker and returns the status and the body.
func (i instance) postAck(t *testing.T, query, header, body string) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(sseRequest(t, "POST", "http://"+i.HTTP, query, header, body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// TestSSEAcknowledgesByPOST: a client may send its acknowledgement to any broker. The broker that
// has the client's stream then sends further messages, also if the hint is lost.
func TestSSEAcknowledgesByPOST(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"", "drop"} {
		t.Run("fault:"+fault, func(t *testing.T) {
			s, _ := redisStore(t, shared.Client(t), testBeat)
			brokers := startThree(t, s, func(o *broker.Options) { o.Links.HintFault = fault })
			query := "user=alice&client=phone"
			c := openStream(t, brokers[0], query, "")
			c.expect("connected", nil)
			const more = queue.MaxWindow + 10
			for n := range more {
				brokers[1].push(t, fmt.Sprintf(`{"client":"alice/phone","data":%d}`, n))
			}
			for n := range queue.MaxWindow {
				c.expect("message", object{"data": n})
			}
			if status, body := brokers[2].postAck(t, query, c.last, ""); status != http.StatusNoContent {
				t.Fatalf("%d %s", status, body)
			}
			for n := queue.MaxWindow; n < more; n++ {
				c.expect("message", object{"data": n})
			}
			if got := brokers[0].queued(t, "alice"); got != "10" {
				t.Errorf("%s messages wait, want 10", got)
			}
			for _, i := range brokers { // in the body, also at the broker that has the client, and twice
				if status, body := i.postAck(t, query, "", c.last+"\n"); status != http.StatusNoContent {
					t.Fatalf("%d %s", status, body)
				}
			}
			c.close()
			await.True(t, "the client is offline", func() bool {
				_, u := brokers[0].call(t, "GET", "/v1/users/alice", "")
				return u["online"] == false
			})
			brokers[0].push(t, `{"client":"alice/phone","data":"later"}`)
			if status, body := brokers[1].postAck(t, query, c.last, ""); status != http.StatusNoContent {
				t.Fatalf("%d %s", status, body)
			}
			if got := brokers[0].queued(t, "alice"); got != "1" {
				t.Errorf("%s messages wait, want 1", got)
			}
		})
	}
}

// TestSSEAcknowledgeRefuses: an acknowledgement needs the same rights as a connect of the client.
func TestSSEAcknowledgeRefuses(t *testing.T) {
	t.Parallel()
	i := start(t, memoryStore(queue.Options{}), nil)
	c := openStream(t, i, "client=tab&secret=0123456789abcdef", "")
	c.expect("connected", nil)
	i.push(t, `{"client":"tab","data":1}`)
	c.expect("message", nil)
	for name, test := range map[string]struct {
		query, id string
		want      int
	}{
		"no id":          {"client=tab&secret=0123456789abcdef", "", http.StatusBadRequest},
		"no secret":      {"client=tab", c.last, http.StatusUnauthorized},
		"another secret": {"client=tab&secret=0123456789abcdeX", c.last, http.StatusUnauthorized},
		"another client": {"client=bat&secret=0123456789abcdef", c.last, http.StatusForbidden},
		"a user":         {"client=tab&user=alice", c.last, http.StatusForbidden},
		"its secret":     {"client=tab&secret=0123456789abcdef", c.last, http.StatusNoContent},
	} {
		if status, body := i.postAck(t, test.query, test.id, ""); status != test.want {
			t.Errorf("%s: %d %s, want %d", name, status, body, test.want)
		}
	}
	locked := start(t, memoryStore(queue.Options{}), withAccessRules(t))
	if status, body := locked.postAck(t, "client=tab", c.last, ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, body)
	}
	if status, body := i.postAck(t, "client=tab", "", strings.Repeat("x", 9<<10)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %s", status, body)
	}
}
