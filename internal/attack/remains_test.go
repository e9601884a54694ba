//go:build long

package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/await"
)

// TestRemains attacks a broker with users that leave as much as they can in the store.
func TestRemains(t *testing.T) {
	const more = "limits: {message_rate: 100000, byte_rate: 100000000, new_channels: 100000}\nrequests: {rate: 100000}\n" +
		"kit: {rooms: {per_user: 50, modes: {arcade: {empty_life: 1s, finished_life: 24h}}}, boards: {boards: {level-*: {submit: true}}}, " +
		"accounts: {guests: true, issuer: login, audience: broker, register_rate: 1000000, renewal_life: 1s, guest_life: 1s}}"
	i := newIssuer(t)
	s := newScenario(t, i, more, fmt.Sprintf("  hs256_secret: %s", i.shared))
	t.Run("large cards", func(t *testing.T) { largeCards(t, s) })
	t.Run("finished rooms", func(t *testing.T) { finishedRooms(t, s) })
	t.Run("many rooms", func(t *testing.T) { manyRooms(t, s) })
	t.Run("many boards", func(t *testing.T) { manyBoards(t, s) })
	t.Run("guests", func(t *testing.T) { manyGuests(t, s) })
	s.finish(t)
}

// method calls a method and returns the reply, or the code of the error.
func (a *attacker) method(t *testing.T, method, data string) (reply json.RawMessage, code string) {
	t.Helper()
	a.send(fmt.Sprintf(`{"type":"request","ref":1,"method":%q,"data":%s}`, method, data))
	for {
		e, code, err := a.readEvent()
		switch {
		case err != nil:
			t.Fatalf("%s: %s %v", method, code, err)
		case code != "":
			return nil, strings.TrimPrefix(code, "error:")
		case e.Type == "reply":
			return e.Data, ""
		}
	}
}

// largeCards makes rooms with as much data as they may have. The lobby stays small, and a player
// that opens it is served at once.
func largeCards(t *testing.T, s *scenario) {
	const rooms = 40
	a := s.connectUser(t, endpoints[0], "large")
	data := strings.Repeat("x", 8<<10-2)
	for i := range rooms {
		if _, code := a.method(t, "room.create", fmt.Sprintf(`{"id":"large-%d","mode":"arcade","data":%q}`, i, data)); code != "" {
			t.Fatalf("room %d: %s", i, code)
		}
	}
	var page string
	await.True(t, "the lobby has the rooms", func() bool {
		_, page = s.call(s.ctx, t, http.MethodGet, "/v1/channels/lobby:arcade/state?limit=1000", "")
		return strings.Contains(page, fmt.Sprintf("room/large-%d", rooms-1))
	})
	if len(page) > rooms*2<<10 {
		t.Errorf("the lobby has %d bytes", len(page))
	}
	player := s.connectUser(t, endpoints[0], "player")
	player.send(`{"type":"subscribe","channel":"lobby:arcade","state":true}`)
	if got := player.reply(); got != "subscribed" {
		t.Errorf("the player got %s", got)
	}
	if _, code := player.method(t, "room.list", `{}`); code != "" {
		t.Errorf("the player got %s", code)
	}
	for i := range rooms {
		if _, code := a.method(t, "room.leave", fmt.Sprintf(`{"room":"large-%d"}`, i)); code != "" {
			t.Fatalf("room %d: %s", i, code)
		}
	}
	s.checkService(t)
}

// finishedRooms makes and finishes rooms, and leaves them. None of them stays.
func finishedRooms(t *testing.T, s *scenario) {
	a := s.connectUser(t, endpoints[0], "finisher")
	for i := range 20 {
		id := fmt.Sprintf(`"done-%d"`, i)
		for _, call := range [][2]string{
			{"room.create", `{"mode":"arcade","id":` + id + `}`}, {"room.finish", `{"room":` + id + `}`}, {"room.leave", `{"room":` + id + `}`},
		} {
			if _, code := a.method(t, call[0], call[1]); code != "" {
				t.Fatalf("%s of %s: %s", call[0], id, code)
			}
		}
	}
	await.True(t, "no room is left", func() bool {
		_, page := s.call(s.ctx, t, http.MethodGet, "/v1/rooms", "")
		return strings.HasPrefix(strings.TrimSpace(page), `{"rooms":[]`)
	})
	s.checkService(t)
}

// manyRooms makes rooms on several connections of a user at once.
func manyRooms(t *testing.T, s *scenario) {
	const connections, each, most = 4, 30, 50
	codes := make(chan string, connections*each)
	var all sync.WaitGroup
	for range connections {
		a := s.connectUser(t, endpoints[0], "builder")
		all.Go(func() {
			for range each {
				_, code := a.method(t, "room.create", `{"mode":"arcade"}`)
				codes <- code
			}
		})
	}
	all.Wait()
	close(codes)
	got := map[string]int{}
	for code := range codes {
		got[code]++
	}
	if got[""] != most || got["full"] != connections*each-most {
		t.Errorf("got %v", got)
	}
	s.checkService(t)
}

// manyBoards submits scores to boards that did not exist. They are few, and they end.
func manyBoards(t *testing.T, s *scenario) {
	a, got := s.connectUser(t, endpoints[0], "scorer"), map[string]int{}
	for i := range 60 {
		_, code := a.method(t, "board.submit", fmt.Sprintf(`{"board":"level-%d","score":1}`, i))
		got[code]++
	}
	if got[""] != 32 || got["full"] != 28 {
		t.Errorf("got %v", got)
	}
	rdb := redisServer.Client(t)
	for i := range 32 {
		for _, key := range []string{"lb_{board:level-%d}", "lb_p_{board:level-%d}"} {
			if left, err := rdb.PTTL(s.ctx, fmt.Sprintf(key, i)).Result(); err != nil || left <= 0 {
				t.Errorf("the TTL of board %d is %v, %v", i, left, err)
			}
		}
	}
	s.checkService(t)
}

// manyGuests registers guests that never come back. They end, and so do their cards.
func manyGuests(t *testing.T, s *scenario) {
	for range 30 {
		s.register(t, "")
	}
	var page string
	await.True(t, "the guests have ended", func() bool {
		_, page = s.call(s.ctx, t, http.MethodGet, "/v1/accounts?state=all", "")
		return strings.Contains(page, `"total":0`)
	})
	s.checkService(t)
}
