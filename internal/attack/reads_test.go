//go:build long

package attack

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	readRate        = 50_000 // limits.user_read of TestReads, bytes a second
	readConnections = 10
	readMessages    = 60      // of each connection
	readDebt        = 1 << 20 // bytes that may be read for messages that are under way when the limit is reached
)

// readKit is what TestReads can make the store read. Each client may make more requests than by
// default, so that only the limit of the user or the address bounds them.
const readKit = `
limits: {proxies: [127.0.0.1], user_read: %d}
requests: {rate: 1000}
kit:
  rooms: {modes: {duel: {capacity: 500}}}
  holds: {read: anyone}
  boards: {boards: {b: {read: anyone}}}
  scenes: {per_user: 200}
`

// TestReads attacks a broker with messages that make the store read much, from many connections of
// one user, or of one address without a user.
func TestReads(t *testing.T) {
	s := newScenario(t, newIssuer(t), fmt.Sprintf(readKit, readRate), "  anonymous: true")
	s.makeReadData(t)
	reader := 0
	user := func(t *testing.T) *attacker { return s.connectUser(t, endpoints[0], fmt.Sprint("reader-", reader)) }
	address := func(t *testing.T) *attacker { return s.connectFrom(t, fmt.Sprint("203.0.113.", reader)) }
	for _, c := range []struct {
		name    string
		connect func(*testing.T) *attacker
		cycle   []string
	}{
		{"counts of one resource, a hundred times", address, method("hold.resources", `{"resources":[`+strings.Repeat(`"hall",`, 99)+`"hall"]}`)},
		{"old positions, and then nothing", user, oldPositions("hall:old")},
		{"old positions, without a user", address, oldPositions("open:old")},
		{"lists of rooms that find nothing", user, method("room.list", `{"free":499}`)},
		{"lists of rooms", user, method("room.list", `{"limit":100}`)},
		{"a scene with many avatars", user, method("scene.get", `{"scene":"town"}`)},
		{"lists of scenes with equal times", user, method("scene.list", `{"world":"w","limit":100}`)},
		{"a board of equal scores", address, method("board.top", `{"board":"b","offset":700,"limit":100}`)},
	} {
		reader++
		t.Run(c.name, func(t *testing.T) { s.readMuch(t, c.connect, c.cycle) })
	}
	t.Run("pages of equal scores", func(t *testing.T) { s.equalScores(t) })
	s.finish(t)
}

func oldPositions(channel string) []string {
	return []string{
		`{"type":"subscribe","ref":%d,"channel":"` + channel + `","after":1}`, `{"type":"unsubscribe","ref":%d,"channel":"` + channel + `"}`,
	}
}

// readMuch repeats a cycle of messages on all connections at once. Redis must not send more than
// the limit permits, and other clients are served meanwhile and after it.
func (s *scenario) readMuch(t *testing.T, connect func(*testing.T) *attacker, cycle []string) {
	t.Helper()
	others := s.ownReads(t)
	firstRound, _ := s.traffic.rounds()
	before, began := redisBytesSent(s.ctx, t), time.Now()
	var all sync.WaitGroup
	var answered, refused atomic.Int64
	for range readConnections {
		c := &costlyClient{attacker: connect(t)}
		all.Go(func() {
			for range readMessages / len(cycle) {
				for _, message := range cycle {
					switch code := c.ask(t, message); code {
					case "":
						answered.Add(1)
					case "rate_limited":
						refused.Add(1)
					default:
						t.Errorf("%s: %s", message, code)
					}
				}
			}
			_ = c.Close()
		})
	}
	all.Wait()
	sent, took := redisBytesSent(s.ctx, t)-before, time.Since(began)
	lastRound, _ := s.traffic.rounds()
	most := readDebt + readRate*(4+int(took/time.Second)) + 2*others*(lastRound-firstRound+2)
	t.Logf("Redis sent %d KB in %v, others %d KB; %d answers, %d refusals; peak %d MB",
		sent>>10, took.Round(time.Millisecond), others*(lastRound-firstRound)>>10, answered.Load(), refused.Load(), s.peak(t)>>20)
	if sent > most {
		t.Errorf("Redis sent %d bytes, at most %d are permitted", sent, most)
	}
	s.checkService(t)
}

// ownReads returns how many bytes Redis sends in a round of the honest clients, with what the
// broker reads for itself meanwhile.
func (s *scenario) ownReads(t *testing.T) int {
	t.Helper()
	first, _ := s.traffic.rounds()
	before := redisBytesSent(s.ctx, t)
	s.traffic.waitRounds(s.ctx, t, minRounds)
	last, _ := s.traffic.rounds()
	return (redisBytesSent(s.ctx, t) - before) / (last - first)
}

// equalScores reads a whole list whose scores are all equal, page by page. The pages read no more
// than a few times what they answer.
func (s *scenario) equalScores(t *testing.T) {
	t.Helper()
	s.traffic.stop() // the last attack
	read := func(path string) (answered, pages int) {
		for cursor := ""; ; pages++ {
			_, answer := s.call(s.ctx, t, http.MethodGet, path+"&limit=20&cursor="+cursor, "")
			answered += len(answer)
			var page struct{ Cursor string }
			if err := json.Unmarshal([]byte(answer), &page); err != nil {
				t.Fatalf("%s: %s", answer, err)
			}
			if cursor = page.Cursor; cursor == "" {
				return answered, pages
			}
		}
	}
	for _, path := range []string{"/v1/boards/b?", "/v1/rooms?mode=duel", "/v1/scenes?world=w"} {
		before := redisBytesSent(s.ctx, t)
		answered, pages := read(path)
		sent := redisBytesSent(s.ctx, t) - before
		t.Logf("%s: Redis sent %d KB for %d KB in %d pages", path, sent>>10, answered>>10, pages)
		if pages < 3 || sent > 4*answered+256<<10 {
			t.Errorf("%s: Redis sent %d bytes for %d in %d pages", path, sent, answered, pages)
		}
	}
}

// makeReadData stores what TestReads reads.
func (s *scenario) makeReadData(t *testing.T) {
	t.Helper()
	call := func(method, path, body string) {
		if status, answer := s.call(s.ctx, t, method, path, body); status >= 300 || strings.Contains(answer, `"error"`) {
			t.Fatalf("%s %s: %d %.300s", method, path, status, answer)
		}
	}
	text := strings.Repeat("x", 900)
	for _, channel := range []string{"hall:old", "open:old"} {
		s.pushMany(t, channel)
	}
	call(http.MethodPut, "/v1/holds/hall", `{"seats":["A1..A10000"]}`)
	call(http.MethodPost, "/v1/scenes", `{"world":"w","name":"town","id":"town"}`)
	for i := range 100 {
		call(http.MethodPost, "/v1/rooms", fmt.Sprintf(`{"id":"r%d","mode":"duel","data":{"text":%q}}`, i, text))
		call(http.MethodPost, "/v1/scenes", fmt.Sprintf(`{"world":"w","name":"s%d","id":"s%d","data":{"text":%q}}`, i, i, text))
		call(http.MethodPost, "/v1/avatars", fmt.Sprintf(`{"user":"u%d","name":"m%d","id":"m%d","data":{"text":%q}}`, i, i, i, strings.Repeat("x", 8000)))
		call(http.MethodPut, fmt.Sprintf("/v1/avatars/m%d/scene", i), `{"scene":"town"}`)
	}
	for i := range 800 {
		call(http.MethodPost, "/v1/boards/b/scores", fmt.Sprintf(`{"player":"p%d","score":7}`, i))
	}
}
