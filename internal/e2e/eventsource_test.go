package e2e

import (
	"bytes"
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
)

// streamEvent is what a client of Server-Sent Events reports.
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
	mu     sync.Mutex // guards the fields below
	got    map[string]map[string][]int
	counts map[string]map[string]int // events, by client and name
	server map[string]string         // that the client is connected to
	failed []string
}

func newStreamLog() *streamLog {
	return &streamLog{got: map[string]map[string][]int{}, counts: map[string]map[string]int{}, server: map[string]string{}}
}

func (l *streamLog) record(raw []byte) {
	var e streamEvent
	err := json.Unmarshal(raw, &e)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed = append(l.failed, fmt.Sprintf("%s: %v", raw, err))
		return
	}
	if l.got[e.Client] == nil {
		l.got[e.Client], l.counts[e.Client] = map[string][]int{}, map[string]int{}
	}
	l.counts[e.Client][e.Event]++
	switch e.Event {
	case "message":
		l.got[e.Client][e.Data.Channel] = append(l.got[e.Client][e.Data.Channel], e.Data.Data)
	case "connected":
		l.server[e.Client] = e.Data.Server
	case "gap", "refused", "ended":
		if e.Data.Code != "" || e.Event != "ended" {
			l.failed = append(l.failed, string(raw))
		}
	}
}

// look calls f with the lock.
func (l *streamLog) look(f func() bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return f()
}

// balance listens on one address and passes each connection on to one of the brokers that accepts
// it, as a load balancer does: EventSource connects to the same URL again and again.
func balance(t *testing.T, brokers []*instance) (addr string) {
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
			for range brokers {
				up, err := net.Dial("tcp", brokers[next%len(brokers)].http)
				if err != nil {
					next++
					continue
				}
				go pipe(c, up)
				go pipe(up, c)
				c = nil
				break
			}
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	return l.Addr().String()
}

// pipe copies until one side ends, and closes both.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_ = to.Close()
	_ = from.Close()
}

// TestEventSource: the EventSource of Chromium and that of npm receive every message once and in
// order, while one broker is killed and another one is drained. A client whose id is taken gives
// up.
func TestEventSource(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	f := deploy(ctx, t, 3)
	addr, log := balance(t, f.brokers), newStreamLog()
	of := func(client string) string {
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
	startChromium(t, pages.URL+"/stream.html?client=page&url="+url.QueryEscape(of("page")))
	start(t, "node", exec.Command("node", "js/stream-node.js", "node", of("node")), log.record)

	clients, pushed := []string{"page", "node"}, 0
	push := func(n int) {
		t.Helper()
		for range n {
			body := fmt.Sprintf(`{"messages":[{"channel":"news","data":%d},{"user":"alice","data":%d}]}`, pushed, pushed)
			resp, err := http.Post("http://"+f.brokers[2].http+"/v1/push/batch", "application/json", bytes.NewReader([]byte(body)))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Fatal(resp.Status)
			}
			pushed++
		}
	}
	received := func() error {
		var err error
		log.look(func() bool {
			for _, c := range clients {
				for _, channel := range []string{"news", ""} {
					if got := log.got[c][channel]; len(got) < pushed {
						err = fmt.Errorf("%s has %d of %d messages of %q; events: %v", c, len(got), pushed, channel, log.counts[c])
					}
				}
			}
			return true
		})
		return err
	}
	on := func(broker *instance) (list []string) {
		log.look(func() bool {
			for _, c := range clients {
				if log.server[c] == broker.id {
					list = append(list, c)
				}
			}
			return true
		})
		return list
	}
	subscribed := func() error {
		var err error
		log.look(func() bool {
			for _, c := range clients {
				if log.counts[c]["subscribed"] == 0 {
					err = fmt.Errorf("%s has not subscribed", c)
				}
			}
			return true
		})
		return err
	}
	await.NoError(ctx, t, "both subscribe", subscribed)
	push(20)
	await.NoError(ctx, t, "everything arrives", received)
	// Brokers 0 and 1 end, one by each way; the balancer has given each client one of the first.
	t.Logf("on the broker to be killed: %v; on the one to be drained: %v", on(f.brokers[0]), on(f.brokers[1]))
	f.brokers[0].Kill()
	push(20)
	f.brokers[1].end(ctx, t, syscall.SIGTERM)
	push(20)
	await.NoError(ctx, t, "everything arrives after a crash and a drain", received)
	log.look(func() bool {
		for _, c := range clients {
			for channel, got := range log.got[c] {
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
		return true
	})
	for _, c := range clients { // another device with the same name
		resp, err := http.Get(of(c))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		await.NoError(ctx, t, c+" gives up", func() error {
			if !log.look(func() bool { return log.counts[c]["ended"] == 1 }) {
				return fmt.Errorf("events: %v", log.counts[c])
			}
			return nil
		})
	}
	log.look(func() bool {
		for _, text := range log.failed {
			t.Error(text)
		}
		return true
	})
}
