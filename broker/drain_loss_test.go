package broker_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
)

// roamingClient is a client that moves to a second server when the first one drains. It records the
// data of the messages by queue, in their order, and ignores ids that it has seen.
type roamingClient struct {
	name       string
	subscribed func() // called after each subscribe
	drained    bool   // the first server asked it to reconnect elsewhere

	mu  sync.Mutex // guards the fields below
	got map[string][]string
}

// received is a message of the broker.
type received struct {
	Type, Channel, Code, Data string
	ID                        int64
}

// run receives the channel news and the client's queue: from the first address until that server
// drains, then from the second one until stop is closed.
func (m *roamingClient) run(addrs [2]string, stop <-chan struct{}) error {
	seen := map[string]int64{}
	for k, addr := range addrs {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(testTimeout))
		ended := make(chan struct{})
		go func() {
			select {
			case <-stop:
			case <-ended:
			}
			_ = conn.Close()
		}()
		err = m.follow(conn, seen, k == 1)
		close(ended)
		select {
		case <-stop:
			return nil
		default:
		}
		if err != io.EOF || k == 1 {
			return fmt.Errorf("%s at address %d: %w", m.name, k, err)
		}
	}
	return nil
}

func (m *roamingClient) follow(conn net.Conn, seen map[string]int64, last bool) error {
	after := ""
	if id := seen["news"]; id > 0 {
		after = fmt.Sprintf(`,"after":%d`, id)
	}
	fmt.Fprintf(conn, "{\"type\":\"connect\",\"client\":%q,\"secret\":%q}\n{\"type\":\"subscribe\",\"channel\":\"news\"%s}\n",
		m.name, secretOf(m.name), after)
	for r := bufio.NewReader(conn); ; {
		raw, err := r.ReadBytes('\n')
		if err != nil {
			return err
		}
		var e received
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%s: %w", raw, err)
		}
		switch e.Type {
		case "subscribed":
			seen["news"] = e.ID
			if last || !m.drained {
				m.subscribed()
			}
		case "message":
			if e.Channel == "" {
				fmt.Fprintf(conn, "{\"type\":\"ack\",\"id\":%d}\n", e.ID)
			}
			if e.ID > seen[e.Channel] {
				seen[e.Channel] = e.ID
				m.mu.Lock()
				m.got[e.Channel] = append(m.got[e.Channel], e.Data)
				m.mu.Unlock()
			}
		case "gap", "error":
			return fmt.Errorf("received %s", raw)
		case "closing":
			if e.Code != "draining" {
				return fmt.Errorf("received %s", raw)
			}
			m.drained = true
		}
	}
}

// pushUntilAccepted repeats a push until it is accepted for all targets. It alternates between the
// addresses, and begins with addrs[first%2].
func pushUntilAccepted(t *testing.T, addrs [2]string, first int, body string) {
	for n := first; ; n++ {
		resp, err := http.Post("http://"+addrs[n%2]+"/v1/push", "application/json", strings.NewReader(body))
		if err != nil {
			continue // refused, or not answered
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK && !strings.Contains(string(raw), `"error"`) {
			return
		}
		if t.Context().Err() != nil {
			return
		}
	}
}

// TestDrainLosesNothing: a broker shuts down under load, and its clients move to another one. Each
// accepted push reaches all of them once, in the order of its pusher.
func TestDrainLosesNothing(t *testing.T) {
	t.Parallel()
	const clientCount = 20
	s, _ := redisStore(t, shared.Client(t), testBeat)
	change := func(o *broker.Options) { o.Timing.Beat = testBeat }
	a, b := start(t, s, change), start(t, s, change)
	for _, i := range []instance{a, b} {
		i.awaitReady(t, http.StatusOK)
		await.True(t, "they see each other", func() bool { return len(i.Servers()) == 2 })
	}
	var onA, onB atomic.Int64 // clients that subscribe to news on a, and on b
	var names []string
	var clients []*roamingClient
	var running sync.WaitGroup
	stop := make(chan struct{})
	for n := range clientCount {
		m := &roamingClient{name: fmt.Sprint("c", n), got: map[string][]string{}}
		m.subscribed = func() {
			if m.drained {
				onB.Add(1)
			} else {
				onA.Add(1)
			}
		}
		names, clients = append(names, fmt.Sprintf("%q", m.name)), append(clients, m)
		running.Go(func() {
			if err := m.run([2]string{a.TCP, b.TCP}, stop); err != nil {
				t.Error(err)
			}
		})
	}
	await.True(t, "all are subscribed", func() bool { return onA.Load() == clientCount })

	p := pushers{addrs: [2]string{a.HTTP, b.HTTP}, stop: make(chan struct{})}
	p.start(t, names)
	p.awaitMore(t, "all pushers run", 50)
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	await.True(t, "all are subscribed on the other server", func() bool { return onB.Load() == clientCount })
	p.awaitMore(t, "all pushers continue", 20)
	close(p.stop)
	p.running.Wait()

	want := map[string]int{
		"news": int(p.counts[0].Load() + p.counts[1].Load()),
		"":     int(p.counts[2].Load() + p.counts[3].Load()),
	}
	for _, m := range clients {
		m.awaitCounts(t, want)
	}
	close(stop)
	running.Wait()
	for _, m := range clients {
		m.check(t, want)
	}
}

// awaitCounts waits until the client has the wanted number of messages of each queue.
func (m *roamingClient) awaitCounts(t *testing.T, want map[string]int) {
	for queue, n := range want {
		await.True(t, fmt.Sprintf("%s has %d messages of %q", m.name, n, queue), func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.got[queue]) >= n
		})
	}
}

// check checks, after run has returned, that the client moved, and received each message once and
// in the order of its pusher.
func (m *roamingClient) check(t *testing.T, want map[string]int) {
	if !m.drained {
		t.Errorf("%s was not asked to reconnect elsewhere", m.name)
	}
	for queue, list := range m.got {
		next := map[int]int{} // by pusher
		for _, data := range list {
			var k, n int
			if _, err := fmt.Sscan(data, &k, &n); err != nil || n != next[k] {
				t.Fatalf("%s got %q of %q, want number %d", m.name, data, queue, next[k])
			}
			next[k]++
		}
		if len(list) != want[queue] {
			t.Errorf("%s got %d messages of %q, want %d", m.name, len(list), queue, want[queue])
		}
	}
}

// pushers are goroutines that number their pushes from zero. They repeat a push until it is
// accepted.
type pushers struct {
	addrs   [2]string
	stop    chan struct{}
	running sync.WaitGroup
	counts  [4]atomic.Int64 // accepted pushes of each pusher
}

// start starts two pushers to the channel news and two to the clients.
func (p *pushers) start(t *testing.T, clients []string) {
	for k := range p.counts {
		target := `"channel":"news"`
		if k >= 2 {
			target = `"clients":[` + strings.Join(clients, ",") + `]`
		}
		p.running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-p.stop:
					return
				default:
				}
				pushUntilAccepted(t, p.addrs, k, fmt.Sprintf(`{%s,"data":"%d %d","key":"%d-%d"}`, target, k, n, k, n))
				p.counts[k].Add(1)
			}
		})
	}
}

// awaitMore waits until each pusher has made n more pushes.
func (p *pushers) awaitMore(t *testing.T, what string, n int64) {
	var least [4]int64
	for k := range p.counts {
		least[k] = p.counts[k].Load() + n
	}
	await.True(t, what, func() bool {
		for k := range p.counts {
			if p.counts[k].Load() < least[k] {
				return false
			}
		}
		return true
	})
}
