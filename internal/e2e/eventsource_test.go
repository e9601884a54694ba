//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"sync"
	"syscall"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/testbed"
)

// streamEvent is an event that a client of Server-Sent Events reports.
type streamEvent struct {
	Client string `json:"client"`
	Event  string `json:"event"`
	Data   struct {
		Channel string `json:"channel"`
		Server  string `json:"server"`
		Code    string `json:"code"`
		Data    int    `json:"data"`
	} `json:"data"`
}

// streamLog collects the events of all clients.
type streamLog struct {
	mu       sync.Mutex                  // guards the fields below
	messages map[string]map[string][]int // data of the messages, by client and channel
	counts   map[string]map[string]int   // number of events, by client and name
	server   map[string]string           // server id of the last connection, by client
	failures []string
}

func newStreamLog() *streamLog {
	return &streamLog{messages: map[string]map[string][]int{}, counts: map[string]map[string]int{}, server: map[string]string{}}
}

func (l *streamLog) record(raw []byte) {
	var e streamEvent
	err := json.Unmarshal(raw, &e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failures = append(l.failures, fmt.Sprintf("%s: %v", raw, err))
		return
	}
	if l.messages[e.Client] == nil {
		l.messages[e.Client], l.counts[e.Client] = map[string][]int{}, map[string]int{}
	}
	l.counts[e.Client][e.Event]++
	switch e.Event {
	case "message":
		l.messages[e.Client][e.Data.Channel] = append(l.messages[e.Client][e.Data.Channel], e.Data.Data)
	case "connected":
		l.server[e.Client] = e.Data.Server
	case "gap", "refused":
		l.failures = append(l.failures, string(raw))
	}
}

// locked calls f while it holds the lock.
func (l *streamLog) locked(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// count returns the number of events of a client with this name.
func (l *streamLog) count(client, event string) (n int) {
	l.locked(func() { n = l.counts[client][event] })
	return n
}

// balance starts a load balancer and returns its address: it relays each connection to the next
// broker that accepts it. An EventSource always reconnects to the same URL.
func balance(t *testing.T, brokers []*testbed.Broker) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for next := 0; ; next++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			broker, err := net.Dial("tcp", brokers[next%len(brokers)].HTTP)
			for range len(brokers) - 1 {
				if err == nil {
					break
				}
				next++
				broker, err = net.Dial("tcp", brokers[next%len(brokers)].HTTP)
			}
			if err != nil {
				_ = c.Close()
				continue
			}
			go relay(c, broker)
			go relay(broker, c)
		}
	}()
	return l.Addr().String()
}

// relay copies bytes from one connection to the other until one ends, and closes both.
func relay(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// TestEventSource checks that the EventSource of Chromium and that of npm receive every message
// once and in order, while one broker is killed and another one is drained. A client gives up when
// other connections take over its id three times.
func TestEventSource(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	d := deploy(t, 3)
	addr, log := balance(t, d.brokers), newStreamLog()
	streamURL := func(client string) string {
		return "http://" + addr + "/sse?channel=news&user=alice&client=" + client
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServer(http.Dir("js")))
	mux.HandleFunc("POST /events", func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		log.record(raw)
	})
	pages := httptest.NewServer(mux) // on 127.0.0.1 like the brokers, so that they accept its origin
	t.Cleanup(func() { pages.CloseClientConnections(); pages.Close() })
	startChromium(t, pages.URL+"/stream.html?client=page&url="+url.QueryEscape(streamURL("page")))
	testbed.Run(t, "node", exec.Command("node", "js/stream-node.js", "node", streamURL("node")), log.record)

	clients, pushed := []string{"page", "node"}, 0
	push := func(n int) {
		t.Helper()
		for range n {
			body := fmt.Sprintf(`{"messages":[{"channel":"news","data":%d},{"user":"alice","data":%d}]}`, pushed, pushed)
			if err := d.brokers[2].Call(ctx, http.MethodPost, "/v1/push/batch", body, nil); err != nil {
				t.Fatal(err)
			}
			pushed++
		}
	}
	received := func() (err error) {
		log.locked(func() {
			for _, c := range clients {
				for _, channel := range []string{"news", ""} {
					if got := log.messages[c][channel]; len(got) < pushed {
						err = fmt.Errorf("%s has %d of %d messages of %q; events: %v", c, len(got), pushed, channel, log.counts[c])
					}
				}
			}
		})
		return err
	}
	connectedTo := func(broker *testbed.Broker) (list []string) {
		log.locked(func() {
			for _, c := range clients {
				if log.server[c] == broker.ID {
					list = append(list, c)
				}
			}
		})
		return list
	}
	subscribed := func() error {
		for _, c := range clients {
			if log.count(c, "subscribed") == 0 {
				return fmt.Errorf("%s has not subscribed", c)
			}
		}
		return nil
	}
	await.NoError(ctx, t, "both subscribe", subscribed)
	push(20)
	await.NoError(ctx, t, "everything arrives", received)
	// The balancer has connected the two clients to brokers 0 and 1, so each fault affects a client.
	t.Logf("on the broker to be killed: %v; on the one to be drained: %v", connectedTo(d.brokers[0]), connectedTo(d.brokers[1]))
	d.brokers[0].Kill()
	push(20)
	end(ctx, t, d.brokers[1], syscall.SIGTERM)
	push(20)
	await.NoError(ctx, t, "everything arrives after a crash and a drain", received)
	log.locked(func() {
		for _, c := range clients {
			for channel, got := range log.messages[c] {
				for n := range got {
					if got[n] != n {
						t.Errorf("%s, %q: message %d is %d", c, channel, n, got[n])
						break
					}
				}
			}
			if log.counts[c]["connected"] < 2 {
				t.Errorf("%s has connected only once", c)
			}
		}
	})
	takeOver := func(c string) { // another connection takes the client's id over
		resp, err := http.Get(streamURL(c))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for _, c := range clients {
		for range 2 { // a superseded client may reconnect twice
			connected := log.count(c, "connected")
			takeOver(c)
			await.True(t, c+" reconnects", func() bool { return log.count(c, "connected") > connected })
		}
		takeOver(c)
		await.NoError(ctx, t, c+" gives up", func() error {
			if n := log.count(c, "ended"); n != 1 {
				return fmt.Errorf("ended %d times, want once", n)
			}
			return nil
		})
	}
	log.locked(func() {
		for _, text := range log.failures {
			t.Error(text)
		}
	})
}
