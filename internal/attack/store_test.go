//go:build long

package attack

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStoreLimits attacks a broker with clients that try to fill Redis with few messages.
func TestStoreLimits(t *testing.T) {
	s := newScenario(t, newIssuer(t), "requests: {allow: anyone}", "  anonymous: true")
	t.Run("requests", func(t *testing.T) { floodOfRequests(t, s) })
	t.Run("anonymous requests", func(t *testing.T) { anonymousRequests(t, s) })
	t.Run("fresh channels", func(t *testing.T) { freshChannels(t, s) })
	s.finish(t)
}

// TestAnonymousRequestsAreForbidden checks that by default an anonymous client may not make
// requests.
func TestAnonymousRequestsAreForbidden(t *testing.T) {
	s := newQuietScenario(t, "", "  anonymous: true")
	for _, e := range endpoints {
		a := s.connectAnonymous(t, e)
		a.send(`{"type":"request","ref":1,"data":1}`)
		if got := a.requestOutcome(); got != "error:forbidden" {
			t.Errorf("%s: got %q", e.name, got)
		}
	}
	if n := s.requestListSizes(t); len(n) > 0 {
		t.Errorf("the lists have %v bytes", n)
	}
}

// newQuietScenario returns a scenario without traffic, so that only the attackers cause reads from
// Redis.
func newQuietScenario(t *testing.T, more, auth string) *scenario {
	t.Helper()
	return newQuietScenarioOf(t, newIssuer(t), more, auth)
}

func newQuietScenarioOf(t *testing.T, i *issuer, more, auth string) *scenario {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	if err := redisServer.Client(t).FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	s := &scenario{ctx: ctx, issuer: i}
	s.broker = startBroker(ctx, t, s.issuer, more, auth)
	return s
}

// connectAnonymous connects an attacker without a token.
func (s *scenario) connectAnonymous(t *testing.T, e endpoint) *attacker {
	t.Helper()
	a := s.open(t, e, "")
	a.send(fmt.Sprintf(`{"type":"connect","client":"anonymous-%d"}`, s.clientCount.Add(1)))
	a.waitFor(t, "connected")
	return a
}

// requestListSizes returns the size of each request list in Redis, in bytes.
func (s *scenario) requestListSizes(t *testing.T) map[string]int {
	t.Helper()
	rdb := redisServer.Client(t)
	sizes := map[string]int{}
	for i := range 16 {
		key := fmt.Sprintf("qq_{%d}", i)
		list, err := rdb.LRange(s.ctx, key, 0, -1).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, request := range list {
			sizes[key] += len(request)
		}
	}
	return sizes
}

// ask sends n large requests on each of the connections in parallel. It counts the outcomes.
func ask(clients []*attacker, n int) map[string]int {
	request := fmt.Sprintf(`{"type":"request","ref":1,"data":"%s"}`, strings.Repeat("x", 60<<10))
	codes := map[string]int{}
	var mu sync.Mutex // guards codes
	var all sync.WaitGroup
	for _, a := range clients {
		all.Go(func() {
			for range n {
				a.send(request)
				code := a.requestOutcome()
				mu.Lock()
				codes[code]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return codes
}

// requestOutcome returns the next error, or "accepted".
func (a *attacker) requestOutcome() string {
	for {
		e, code, err := a.readEvent()
		switch {
		case err != nil:
			return strings.TrimSpace(code + " " + err.Error())
		case code != "":
			return code
		case e.Type == "accepted":
			return e.Type
		}
	}
}

// floodOfRequests fills the lists with requests of four users. Each user has a limited share.
func floodOfRequests(t *testing.T, s *scenario) {
	const share = 1 << 20
	var clients []*attacker
	for i := range 4 {
		for _, e := range endpoints[:2] {
			clients = append(clients, s.connectUser(t, e, fmt.Sprint("greedy-", i)))
		}
	}
	codes := ask(clients, 100)
	if codes["accepted"] == 0 || codes["error:rate_limited"] == 0 || len(codes) != 2 {
		t.Errorf("got %v", codes)
	}
	sum := 0
	for _, n := range s.requestListSizes(t) {
		sum += n
	}
	if sum > 4*share {
		t.Errorf("four users had %d bytes stored", sum)
	}
	s.checkService(t)
}

// anonymousRequests fills the lists with requests of anonymous clients. All of them use one list
// and one share, whatever ids they choose.
func anonymousRequests(t *testing.T, s *scenario) {
	rdb := redisServer.Client(t)
	for i := range 16 { // lists of the previous subtest
		if err := rdb.Del(s.ctx, fmt.Sprintf("qq_{%d}", i)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var clients []*attacker
	for i := range 16 {
		clients = append(clients, s.connectAnonymous(t, endpoints[i%2]))
	}
	codes := ask(clients, 20)
	if codes["accepted"] == 0 || codes["error:rate_limited"] == 0 || len(codes) != 2 {
		t.Errorf("got %v", codes)
	}
	sizes := s.requestListSizes(t)
	if len(sizes) != 1 || sizes["qq_{0}"] == 0 || sizes["qq_{0}"] > 1<<20 {
		t.Errorf("the lists have %v bytes", sizes)
	}
	s.checkService(t)
}

// freshChannels publishes and subscribes to many new channels.
func freshChannels(t *testing.T, s *scenario) {
	const attempts = 700
	rdb := redisServer.Client(t)
	count := func(pattern string) (keys []string) {
		found := rdb.Scan(s.ctx, 0, pattern, 10_000).Iterator()
		for found.Next(s.ctx) {
			keys = append(keys, found.Val())
		}
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		return keys
	}
	began := time.Now()
	for _, c := range []struct{ request, done string }{
		{`{"type":"publish","channel":"hall:%s-%d","data":1}`, "published"},
		{`{"type":"subscribe","channel":"hall:%s-%d"}`, "subscribed"},
	} {
		a, codes := s.connectUser(t, endpoints[0], "explorer-"+c.done), map[string]int{}
		for i := range attempts {
			a.send(fmt.Sprintf(c.request, c.done, i))
			codes[a.reply()]++
		}
		most := 128 + 1 + int(time.Since(began)/time.Second) // the burst, and one a second
		if n := codes[c.done]; n == 0 || n > most || codes["error:rate_limited"] != attempts-n {
			t.Errorf("got %v", codes)
		}
		if n := len(count("mq_m_{hall:published-*")); n > most {
			t.Errorf("%d channels are stored", n)
		}
		_ = a.Close()
	}
	for _, key := range count("mq_m_{hall:*") {
		if left, err := rdb.PTTL(s.ctx, key).Result(); err != nil || left <= 0 || left > 8*time.Hour {
			t.Errorf("TTL of %s: %v (%v)", key, left, err)
		}
	}
	s.checkService(t)
}

// redisBytesSent returns how many bytes Redis has sent to all its clients.
func redisBytesSent(ctx context.Context, t *testing.T) int {
	t.Helper()
	info, err := redisServer.Client(t).Info(ctx, "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "total_net_output_bytes:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(text))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no total_net_output_bytes in %s", info)
	return 0
}

// TestReadsAreNotAmplified checks that a request of a client or of the backend does not read much
// more from Redis than the response needs.
func TestReadsAreNotAmplified(t *testing.T) {
	const (
		times   = 40
		members = 1000
		idle    = 2 << 20 // upper bound of the broker's own reads during the test
	)
	s := newQuietScenario(t, "limits: {message_rate: 0, byte_rate: 0, user_read: 0}", "") // a history has 120 KiB
	rdb := redisServer.Client(t)
	message := fmt.Sprintf(`{"channel":"hall:long","data":%q}`, strings.Repeat("x", 60<<10))
	for range 30 {
		if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", message); status != http.StatusOK {
			t.Fatal(status, answer)
		}
	}
	a := s.connectUser(t, endpoints[0], "mallory")
	a.send(`{"type":"subscribe","channel":"hall:large"}`)
	a.waitFor(t, "subscribed")
	servers, err := rdb.SMembers(s.ctx, "ch_{hall:large}").Result()
	if err != nil || len(servers) != 1 {
		t.Fatal(servers, err)
	}
	rosterBytes := 0
	for i := range members {
		name := fmt.Sprint("ghost-", i)
		entry := fmt.Sprintf(`%d:1:{"user":%q,"info":{"about":%q}}`, time.Now().UnixMilli(), name, strings.Repeat("x", 600))
		if err := rdb.HSet(s.ctx, "ch_p_{hall:large}:"+servers[0], name, entry).Err(); err != nil {
			t.Fatal(err)
		}
		rosterBytes += len(entry)
	}
	client := func(request, want string) func() {
		return func() {
			a.send(request)
			if got := a.reply(); got != want {
				t.Fatalf("%s: got %s", request, got)
			}
		}
	}
	backend := func(path string) func() {
		return func() {
			if status, answer := s.call(s.ctx, t, http.MethodGet, path, ""); status != http.StatusOK {
				t.Fatal(status, answer)
			}
		}
	}
	for name, c := range map[string]struct {
		send func()
		each int // bytes that Redis may send per request
	}{
		"client history":        {client(`{"type":"history","channel":"hall:long"}`, "history"), 140 << 10},
		"client presence page":  {client(`{"type":"presence","channel":"hall:large","limit":1}`, "presence"), 8 << 10},
		"backend history":       {backend("/v1/channels/hall:long/history?limit=2"), 130 << 10},
		"backend presence page": {backend("/v1/channels/hall:large/presence?limit=1"), 8 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			before, began := redisBytesSent(s.ctx, t), time.Now()
			for range times {
				c.send()
			}
			took := time.Since(began)
			got := redisBytesSent(s.ctx, t) - before
			// The broker counts the users of the channel once a second, and reads its roster for that.
			if most := idle + times*c.each + rosterBytes*(2+int(took/time.Second)); got > most {
				t.Errorf("Redis sent %d bytes for %d requests, %d at most were expected", got, times, most)
			}
			t.Logf("Redis sent %d bytes for each of %d requests", got/times, times)
		})
	}
}
