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

// TestTheStoreStands has clients that try to fill Redis, or to have it read without end, by few
// messages.
func TestTheStoreStands(t *testing.T) {
	s := begin(t, newIssuer(t), "requests: {allow: anyone}", "  anonymous: true")
	t.Run("requests", func(t *testing.T) { floodOfRequests(t, s) })
	t.Run("requests of strangers", func(t *testing.T) { strangersRequests(t, s) })
	t.Run("fresh channels", func(t *testing.T) { freshChannels(t, s) })
	s.end(t)
}

// TestStrangersMayNotRequest has a broker with the defaults.
func TestStrangersMayNotRequest(t *testing.T) {
	s := alone(t, "", "  anonymous: true")
	for _, e := range entrances {
		a := s.stranger(t, e)
		a.say(`{"type":"request","ref":1,"data":1}`)
		if got := a.accepted(); got != "error:forbidden" {
			t.Errorf("%s: told %q", e.name, got)
		}
	}
	if n := s.lists(t); len(n) > 0 {
		t.Errorf("the lists have %v bytes", n)
	}
}

// alone is a siege without a crowd, so that what Redis sends is for the attackers.
func alone(t *testing.T, more, auth string) *siege {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	if err := redisServer.Client(t).FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	s := &siege{ctx: ctx, issuer: newIssuer(t)}
	s.victim = startVictim(ctx, t, s.issuer, more, auth)
	return s
}

// stranger is a client without a token.
func (s *siege) stranger(t *testing.T, e entrance) *assailant {
	t.Helper()
	a := s.enter(t, e, "")
	a.say(fmt.Sprintf(`{"type":"connect","client":"stranger-%d"}`, s.comer.Add(1)))
	a.until(t, "connected")
	return a
}

// lists are the bytes of each list of requests.
func (s *siege) lists(t *testing.T) map[string]int {
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

// ask has clients send n large requests each, side by side, and says what they were told.
func ask(clients []*assailant, n int) map[string]int {
	request := fmt.Sprintf(`{"type":"request","ref":1,"data":"%s"}`, strings.Repeat("x", 60<<10))
	words := map[string]int{}
	var mu sync.Mutex // guards words
	var all sync.WaitGroup
	for _, a := range clients {
		all.Go(func() {
			for range n {
				a.say(request)
				word := a.accepted()
				mu.Lock()
				words[word]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return words
}

// accepted is the next word, or "accepted".
func (a *assailant) accepted() string {
	for {
		e, word, err := a.read()
		switch {
		case err != nil:
			return strings.TrimSpace(word + " " + err.Error())
		case word != "":
			return word
		case e.Type == "accepted":
			return e.Type
		}
	}
}

// floodOfRequests has four users fill the lists. Each has a share of one.
func floodOfRequests(t *testing.T, s *siege) {
	const share = 1 << 20
	var clients []*assailant
	for i := range 4 {
		for _, e := range entrances[:2] {
			clients = append(clients, s.known(t, e, fmt.Sprint("greedy-", i)))
		}
	}
	words := ask(clients, 100)
	if words["accepted"] == 0 || words["error:rate_limited"] == 0 || len(words) != 2 {
		t.Errorf("told %v", words)
	}
	sum := 0
	for _, n := range s.lists(t) {
		sum += n
	}
	if sum > 4*share {
		t.Errorf("four users had %d bytes stored", sum)
	}
	s.holds(t)
}

// strangersRequests has clients without a token fill the lists: an id that they choose must not
// choose the list, nor be worth another share.
func strangersRequests(t *testing.T, s *siege) {
	rdb := redisServer.Client(t)
	for i := range 16 { // what the last ones left
		if err := rdb.Del(s.ctx, fmt.Sprintf("qq_{%d}", i)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	var clients []*assailant
	for i := range 16 {
		clients = append(clients, s.stranger(t, entrances[i%2]))
	}
	words := ask(clients, 20)
	if words["accepted"] == 0 || words["error:rate_limited"] == 0 || len(words) != 2 {
		t.Errorf("told %v", words)
	}
	sizes := s.lists(t)
	if len(sizes) != 1 || sizes["qq_{0}"] == 0 || sizes["qq_{0}"] > 1<<20 {
		t.Errorf("the lists have %v bytes", sizes)
	}
	s.holds(t)
}

// freshChannels has a user publish to, and subscribe to, one channel after another.
func freshChannels(t *testing.T, s *siege) {
	const some = 700
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
	for _, c := range []struct{ say, done string }{
		{`{"type":"publish","channel":"room:%s-%d","data":1}`, "published"},
		{`{"type":"subscribe","channel":"room:%s-%d"}`, "subscribed"},
	} {
		a, words := s.known(t, entrances[0], "explorer"), map[string]int{}
		for i := range some {
			a.say(fmt.Sprintf(c.say, c.done, i))
			words[a.answer()]++
		}
		most := 128 + 1 + int(time.Since(began)/time.Second) // the burst, and one a second
		if n := words[c.done]; n == 0 || n > most || words["error:rate_limited"] != some-n {
			t.Errorf("told %v", words)
		}
		if n := len(count("mq_m_{room:published-*")); n > most {
			t.Errorf("%d channels are remembered", n)
		}
		_ = a.Close()
	}
	for _, key := range count("mq_m_{room:*") {
		if left, err := rdb.PTTL(s.ctx, key).Result(); err != nil || left <= 0 || left > 8*time.Hour {
			t.Errorf("%s lives %v (%v)", key, left, err)
		}
	}
	s.holds(t)
}

// sent is how many bytes Redis has sent to anybody.
func sent(ctx context.Context, t *testing.T) int {
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

// TestReadsAreNotAmplified: what a client or the backend asks for is not read many times over from
// Redis.
func TestReadsAreNotAmplified(t *testing.T) {
	const (
		times   = 40
		members = 1000
		idle    = 2 << 20 // more than the broker reads for itself meanwhile
	)
	s := alone(t, "", "")
	rdb := redisServer.Client(t)
	message := fmt.Sprintf(`{"channel":"room:long","data":%q}`, strings.Repeat("x", 60<<10))
	for range 30 {
		if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", message); status != http.StatusOK {
			t.Fatal(status, answer)
		}
	}
	a := s.known(t, entrances[0], "mallory")
	a.say(`{"type":"subscribe","channel":"room:large"}`)
	a.until(t, "subscribed")
	servers, err := rdb.SMembers(s.ctx, "ch_{room:large}").Result()
	if err != nil || len(servers) != 1 {
		t.Fatal(servers, err)
	}
	roster := 0
	for i := range members {
		name := fmt.Sprint("ghost-", i)
		entry := fmt.Sprintf(`%d:1:{"user":%q,"info":{"about":%q}}`, time.Now().UnixMilli(), name, strings.Repeat("x", 600))
		if err := rdb.HSet(s.ctx, "ch_p_{room:large}:"+servers[0], name, entry).Err(); err != nil {
			t.Fatal(err)
		}
		roster += len(entry)
	}
	client := func(say, want string) func() int {
		return func() int {
			a.say(say)
			if got := a.answer(); got != want {
				t.Fatalf("%s is answered with %s", say, got)
			}
			return len(say)
		}
	}
	backend := func(path string) func() int {
		return func() int {
			status, answer := s.call(s.ctx, t, http.MethodGet, path, "")
			if status != http.StatusOK {
				t.Fatal(status, answer)
			}
			return len(answer)
		}
	}
	for name, c := range map[string]struct {
		ask  func() int
		each int // bytes that Redis may send for it
	}{
		"a client's history":       {client(`{"type":"history","channel":"room:long"}`, "history"), 140 << 10},
		"a client's presence page": {client(`{"type":"presence","channel":"room:large","limit":1}`, "presence"), 8 << 10},
		"the backend's history":    {backend("/v1/channels/room:long/history?limit=2"), 130 << 10},
		"its presence page":        {backend("/v1/channels/room:large/presence?limit=1"), 8 << 10},
	} {
		t.Run(name, func(t *testing.T) {
			before, began := sent(s.ctx, t), time.Now()
			for range times {
				c.ask()
			}
			took := time.Since(began)
			got := sent(s.ctx, t) - before
			// The users of a channel are counted once a second.
			if most := idle + times*c.each + roster*(2+int(took/time.Second)); got > most {
				t.Errorf("Redis sent %d bytes for %d requests, %d at most were expected", got, times, most)
			}
			t.Logf("Redis sent %d bytes for each of %d requests", got/times, times)
		})
	}
}
