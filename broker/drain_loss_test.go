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

// mover is a client that goes where it is sent, and keeps what it got: by queue, the data of the messages
// in the order of their coming. Ids that it has seen it drops.
type mover struct {
	name      string
	moved     func() // called when it is on the second address
	dismissed bool   // it was told to leave the first one

	mu  sync.Mutex // guards the fields below
	got map[string][]string
}

type heard struct {
	Type, Channel, Code, Data string
	ID                        int64
}

// run follows the channel news and its own queue, at the first address until that one sends it away, and
// then at the second until stop is closed.
func (m *mover) run(addrs [2]string, stop <-chan struct{}) error {
	seen := map[string]int64{}
	for k, addr := range addrs {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
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

func (m *mover) follow(conn net.Conn, seen map[string]int64, last bool) error {
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
		var e heard
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("%s: %w", raw, err)
		}
		switch e.Type {
		case "subscribed":
			seen["news"] = e.ID
			if last || !m.dismissed {
				m.moved()
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
			return fmt.Errorf("heard %s", raw)
		case "closing":
			if e.Code != "draining" {
				return fmt.Errorf("heard %s", raw)
			}
			m.dismissed = true
		}
	}
}

// pushed makes a push, at one address after the other, until all of its targets have accepted it.
func pushed(t *testing.T, addrs [2]string, first int, body string) {
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

// TestDrainLosesNothing: a broker goes down under load, and its clients go to another. Every push that was
// accepted, by whichever, comes to all of them once and in its pusher's order.
func TestDrainLosesNothing(t *testing.T) {
	const clients = 20
	s, _ := redisStore(t, shared.Client(t), testBeat)
	change := func(o *broker.Options) { o.Timing.Beat = testBeat }
	a, b := start(t, s, change), start(t, s, change)
	for _, i := range []instance{a, b} {
		i.ready(t, http.StatusOK)
		await.True(t, "they see each other", func() bool { return len(i.Servers()) == 2 })
	}
	var here, there atomic.Int64 // clients that follow news at a, and at b
	var names []string
	var movers []*mover
	var running, pushing sync.WaitGroup
	stop, enough := make(chan struct{}), make(chan struct{})
	for n := range clients {
		m := &mover{name: fmt.Sprint("c", n), got: map[string][]string{}}
		m.moved = func() {
			if m.dismissed {
				there.Add(1)
			} else {
				here.Add(1)
			}
		}
		names, movers = append(names, fmt.Sprintf("%q", m.name)), append(movers, m)
		running.Go(func() {
			if err := m.run([2]string{a.TCP, b.TCP}, stop); err != nil {
				t.Error(err)
			}
		})
	}
	await.True(t, "all follow", func() bool { return here.Load() == clients })

	var counts [4]atomic.Int64 // what each pusher had accepted
	for k := range counts {
		target := `"channel":"news"`
		if k >= 2 {
			target = `"clients":[` + strings.Join(names, ",") + `]`
		}
		pushing.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-enough:
					return
				default:
				}
				pushed(t, [2]string{a.HTTP, b.HTTP}, k, fmt.Sprintf(`{%s,"data":"%d %d","key":"%d-%d"}`, target, k, n, k, n))
				counts[k].Add(1)
			}
		})
	}
	all := func(least [4]int64) func() bool {
		return func() bool {
			for k := range counts {
				if counts[k].Load() < least[k] {
					return false
				}
			}
			return true
		}
	}
	await.True(t, "the load is on", all([4]int64{50, 50, 50, 50}))
	if err := a.stop(); err != nil {
		t.Error(err)
	}
	await.True(t, "all follow at the other one", func() bool { return there.Load() == clients })
	var more [4]int64
	for k := range more {
		more[k] = counts[k].Load() + 20
	}
	await.True(t, "the load goes on", all(more))
	close(enough)
	pushing.Wait()

	want := map[string]int{
		"news": int(counts[0].Load() + counts[1].Load()),
		"":     int(counts[2].Load() + counts[3].Load()),
	}
	for _, m := range movers {
		for queue, n := range want {
			await.True(t, fmt.Sprintf("%s has %d messages of %q", m.name, n, queue), func() bool {
				m.mu.Lock()
				defer m.mu.Unlock()
				return len(m.got[queue]) >= n
			})
		}
	}
	close(stop)
	running.Wait()
	for _, m := range movers {
		if !m.dismissed {
			t.Errorf("%s was not told that its broker goes", m.name)
		}
		for queue, list := range m.got {
			next := map[int]int{} // by pusher
			for _, data := range list {
				var k, n int
				if _, err := fmt.Sscan(data, &k, &n); err != nil || n != next[k] {
					t.Fatalf("%s got %q of %q where %d is due", m.name, data, queue, next[k])
				}
				next[k]++
			}
			if len(list) != want[queue] {
				t.Errorf("%s got %d messages of %q, want %d", m.name, len(list), queue, want[queue])
			}
		}
	}
}
