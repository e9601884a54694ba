//go:build long

package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// costSettings are those of a broker with all that a client can make it read.
const costSettings = `
limits: {message_rate: 0, byte_rate: 0, user_read: 0}
requests: {rate: 0}
kit:
  rooms: {modes: {duel: {capacity: 500, reserve: 24h}}}
  holds: {per_user: 60, hold_time: 24h, max_life: 24h, methods: [hold.hold, hold.get, hold.mine, hold.resources, hold.confirm]}
  boards:
  scenes: {per_user: 200}
  accounts:
    {guests: true, issuer: login, audience: broker, iterations: 4096, name_rate: 1000000, address_rate: 1000000,
     register_rate: 1000000, call_rate: 1000000}
`

// makeCostlyData stores what makes the messages costly.
func (s *scenario) makeCostlyData(t *testing.T) {
	t.Helper()
	text := func(n int) string { return strings.Repeat("x", n) }
	type object = map[string]any
	var mu sync.Mutex
	call := func(method, path string, body any) {
		encoded, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		if status, answer := s.call(s.ctx, t, method, path, string(encoded)); status >= 300 || strings.Contains(answer, `"error"`) {
			mu.Lock()
			defer mu.Unlock()
			t.Errorf("%s %s: %d %.300s", method, path, status, answer)
		}
	}
	each := func(n int, do func(i int)) {
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := w; i < n; i += 8 {
					do(i)
				}
			})
		}
		all.Wait()
	}
	names := func(prefix string, n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprint(prefix, i)
		}
		return list
	}

	for _, channel := range []string{"hall:long", "hall:old", "open:old"} {
		s.pushMany(t, channel)
	}
	for _, channel := range []string{"state:full", "state:x"} {
		each(20, func(i int) {
			call(http.MethodPost, "/v1/push", object{"channel": channel, "set": object{
				fmt.Sprint("seat/", 3*i): text(16_000), fmt.Sprint("seat/", 3*i+1): text(16_000), fmt.Sprint("seat/", 3*i+2): text(16_000),
			}})
		})
	}
	each(300, func(i int) {
		call(http.MethodPost, "/v1/rooms", object{"id": fmt.Sprint("r", i), "mode": "duel", "data": object{"text": text(900)}})
	})
	for id, capacity := range map[string]int{"big": 500, "own": 500, "others": 500, "full": 480} {
		call(http.MethodPost, "/v1/rooms", object{"id": id, "mode": "duel", "owner": "absent", "capacity": capacity})
		for i := range 8 {
			call(http.MethodPost, "/v1/rooms/"+id+"/reserve", object{"users": names(fmt.Sprint("guest-", i, "-"), 60)})
		}
	}
	witness := &costlyClient{attacker: s.connectUser(t, endpoints[0], "witness")}
	witness.ask(t, method("room.join", `{"room":"others"}`)[0])
	rich := &costlyClient{attacker: s.connectUser(t, endpoints[0], "mallory")}
	for range 100 {
		if code := rich.ask(t, method("room.create", `{"mode":"duel"}`)[0]); code != "" {
			t.Fatalf("a room of mallory: %s", code)
		}
	}
	each(100, func(i int) {
		call(http.MethodPost, fmt.Sprintf("/v1/rooms/r%d/reserve", i), object{"users": append(names("guest-", 50), "mallory")})
	})
	var imports []object
	for i := range 150 {
		seats := make([]string, 64)
		for k := range seats {
			seats[k] = fmt.Sprint("A", 64*i+k+1)
		}
		imports = append(imports, object{"id": fmt.Sprint("h", i), "user": fmt.Sprint("u", i), "seats": seats, "until": time.Now().Add(time.Hour).UnixMilli()})
	}
	call(http.MethodPut, "/v1/holds/hall", object{"seats": []string{"A1..A10000"}, "import": imports})
	each(200, func(i int) {
		call(http.MethodPost, "/v1/boards/b/scores", object{"player": fmt.Sprint("p", i), "score": i})
	})
	call(http.MethodPost, "/v1/scenes", object{"world": "w", "name": "town", "id": "town"})
	each(30, func(i int) {
		call(http.MethodPost, "/v1/scenes", object{"world": "w", "name": fmt.Sprint("s", i), "id": fmt.Sprint("s", i), "data": object{"text": text(8000)}})
	})
	each(100, func(i int) {
		id := fmt.Sprint("m", i)
		call(http.MethodPost, "/v1/avatars", object{"user": "mallory", "name": id, "id": id, "data": object{"text": text(8000)}})
		call(http.MethodPut, "/v1/avatars/"+id+"/scene", object{"scene": "town"})
	})
	s.register(t, "amy")
	s.fillRoster(t, "hall:large", 5000)
	s.fillRoster(t, "hall:watched", 5000)
}

// pushMany stores 800 messages of 10 KB in a channel.
func (s *scenario) pushMany(t *testing.T, channel string) {
	t.Helper()
	message := fmt.Sprintf(`{"channel":%q,"data":%q}`, channel, strings.Repeat("x", 10_000))
	batch := `{"messages":[` + strings.Repeat(message+",", 99) + message + `]}`
	for range 8 {
		if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push/batch", batch); status != http.StatusOK || strings.Contains(answer, `"error"`) {
			t.Fatalf("%d %.300s", status, answer)
		}
	}
}

// fillRoster makes a channel have many members on this server.
func (s *scenario) fillRoster(t *testing.T, channel string, members int) {
	t.Helper()
	a := s.connectUser(t, endpoints[0], "witness")
	a.send(`{"type":"subscribe","channel":"` + channel + `"}`)
	a.waitFor(t, "subscribed")
	rdb := redisServer.Client(t)
	servers, err := rdb.SMembers(s.ctx, "ch_{"+channel+"}").Result()
	if err != nil || len(servers) != 1 {
		t.Fatal(servers, err)
	}
	var fields []any
	for i := range members {
		name := fmt.Sprint("ghost-", i)
		fields = append(fields, name, fmt.Sprintf(`%d:1:{"user":%q,"info":{"about":%q}}`, time.Now().UnixMilli(), name, strings.Repeat("x", 150)))
	}
	if err := rdb.HSet(s.ctx, "ch_p_{"+channel+"}:"+servers[0], fields...).Err(); err != nil {
		t.Fatal(err)
	}
}
