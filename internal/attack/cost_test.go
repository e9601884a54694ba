//go:build long

package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What one byte may cost. The bytes of Redis are those that the client does not receive.
const (
	mostRedisPerByte = 300                   // for each byte that the client sends
	mostCPUPerByte   = 20 * time.Microsecond // of the broker and of Redis, for each byte that the client sends or receives
	// costCycles is how often a cycle is repeated in a window. The cheapest window counts: the
	// broker's own work, such as a round of the kit, and counts that are kept for a second are in the
	// others.
	// After the first costWindows a message that seems too expensive has up to mostCostWindows.
	costCycles, costWindows, mostCostWindows = 10, 3, 40
)

// A costlyMessage is a message of a client, or several that it sends in turn, which make the store
// read more than the client sends.
type costlyMessage struct {
	name  string
	cycle []string
	first []string // is sent before, once
	// prepare runs before first, once. Nil means nothing.
	prepare func(*testing.T, *scenario, *costlyClient)
}

// costlyMessages are the costliest messages of each kind, for the data of makeCostlyData.
var costlyMessages = []costlyMessage{
	{name: "publish", cycle: []string{`{"type":"publish","ref":%d,"channel":"hall:x","data":1}`}},
	{name: "publish to a full group", cycle: []string{`{"type":"publish","ref":%d,"channel":"state:full","set":{"seat/x":1}}`}},
	{name: "publish with conditions", cycle: []string{`{"type":"publish","ref":%d,"channel":"state:full","if":{` + manyConditions() + `},"set":{"x":1}}`}},
	{name: "history", cycle: []string{`{"type":"history","ref":%d,"channel":"hall:long"}`}},
	{name: "page of a state", cycle: []string{`{"type":"state","ref":%d,"channel":"state:full"}`}},
	{name: "subscribe to old messages", cycle: []string{
		`{"type":"subscribe","ref":%d,"channel":"hall:old","after":1}`, `{"type":"unsubscribe","ref":%d,"channel":"hall:old"}`,
	}},
	{name: "subscribe to a state", cycle: []string{
		`{"type":"subscribe","ref":%d,"channel":"state:x","state":"seat/x"}`, `{"type":"unsubscribe","ref":%d,"channel":"state:x"}`,
	}},
	{name: "subscribe to a presence", cycle: []string{
		`{"type":"subscribe","ref":%d,"channel":"hall:watched","presence":true}`, `{"type":"unsubscribe","ref":%d,"channel":"hall:watched"}`,
	}},
	{name: "presence", cycle: []string{`{"type":"presence","ref":%d,"channel":"hall:large"}`}},
	{name: "here", cycle: []string{`{"type":"here","ref":%d,"channel":"hall:x","data":1}`, `{"type":"ping","ref":%d}`}},
	{name: "room.list that finds nothing", cycle: method("room.list", `{"free":499}`)},
	{name: "room.list", cycle: method("room.list", `{"limit":100}`)},
	{name: "room.get", cycle: method("room.get", `{"room":"big"}`)},
	{name: "room.join of a full room", cycle: method("room.join", `{"room":"full"}`)},
	{name: "room.join by a member", cycle: method("room.join", `{"room":"own"}`)},
	{name: "room.create of a room that exists", cycle: method("room.create", `{"id":"big","mode":"duel"}`)},
	{name: "room.create beyond the budget", cycle: method("room.create", `{"mode":"duel"}`)},
	{name: "room.leave by another user", cycle: method("room.leave", `{"room":"big"}`)},
	{name: "room.lock by another user", cycle: method("room.lock", `{"room":"big"}`)},
	{name: "room.lock by a member", cycle: method("room.lock", `{"room":"others"}`), first: method("room.join", `{"room":"others"}`)},
	{name: "room.lock by the owner", cycle: method("room.lock", `{"room":"own"}`), first: method("room.join", `{"room":"own"}`)},
	{name: "room.kick of no member", cycle: method("room.kick", `{"room":"own","n":1000}`), first: method("room.join", `{"room":"own"}`)},
	{name: "room.mine", cycle: method("room.mine", `{"limit":100}`)},
	{name: "hold.resources", cycle: method("hold.resources", `{"resources":[`+strings.Repeat(`"hall",`, 99)+`"hall"]}`)},
	{name: "hold.mine", cycle: method("hold.mine", `{"resource":"hall"}`)},
	{name: "hold.hold of taken seats", cycle: method("hold.hold", `{"resource":"hall","seats":["A1"]}`)},
	{name: "hold.get", cycle: method("hold.get", `{"resource":"hall","id":"x"}`)},
	{name: "board.top", cycle: method("board.top", `{"board":"b","limit":100}`)},
	{name: "board.around", cycle: method("board.around", `{"board":"b","player":"p100","limit":50}`)},
	{name: "scene.get", cycle: method("scene.get", `{"scene":"town"}`)},
	{name: "scene.list", cycle: method("scene.list", `{"world":"w","limit":100}`)},
	{name: "avatar.list", cycle: method("avatar.list", `{"limit":100}`)},
	{name: "room.quick", cycle: method("room.quick", `{"mode":"duel"}`)},
	{name: "room.patch by another user", cycle: method("room.patch", `{"room":"big","version":1,"name":"x"}`)},
	{name: "room.patch by the owner", cycle: method("room.patch", `{"room":"own","version":$version,"name":"x"}`),
		first: append(method("room.join", `{"room":"own"}`), method("room.lock", `{"room":"own"}`)...)},
	{name: "room.patch with another version", cycle: method("room.patch", `{"room":"own","version":1,"name":"x"}`), first: method("room.join", `{"room":"own"}`)},
	{name: "hold.confirm of no hold", cycle: method("hold.confirm", `{"resource":"hall","id":"x"}`)},
	{name: "hold.confirm", cycle: method("hold.confirm", `{"resource":"hall","id":"mine"}`),
		first: method("hold.hold", `{"resource":"hall","id":"mine","seats":["A9999"]}`)},
	{name: "avatar.create and avatar.delete", cycle: append(method("avatar.create", `{"name":"x"}`), method("avatar.delete", `{"avatar":"$id","version":$version}`)...)},
	{name: "avatar.create of one that exists", cycle: method("avatar.create", `{"name":"x","key":"k"}`)},
	{name: "avatar.create with a name that is taken", cycle: method("avatar.create", `{"name":"m1"}`)},
	{name: "avatar.patch", cycle: method("avatar.patch", `{"avatar":"m0","version":$version,"figure":"x"}`),
		first: method("avatar.patch", `{"avatar":"m0","version":9999,"figure":"x"}`)},
	{name: "avatar.patch with another version", cycle: method("avatar.patch", `{"avatar":"m2","version":9999,"name":"x"}`)},
	{name: "avatar.delete with another version", cycle: method("avatar.delete", `{"avatar":"m2","version":9999}`)},
}

func method(name, data string) []string {
	return []string{fmt.Sprintf(`{"type":"request","ref":%%d,"method":%q,"data":%s}`, name, data)}
}

func manyConditions() string {
	list := make([]string, 60)
	for i := range list {
		list[i] = fmt.Sprintf(`"seat/%d":7`, i)
	}
	return strings.Join(list, ",")
}

// usage is what Redis, the broker and the client have used.
type usage struct {
	redis, sent, received int // bytes that Redis has sent, and of the client
	cpu                   time.Duration
}

// use returns what has been used so far.
func (s *scenario) use(t *testing.T, c *costlyClient) usage {
	t.Helper()
	return usage{redisBytesSent(s.ctx, t), c.sent, c.received, redisCPU(s.ctx, t) + cpuOf(t, s.PID())}
}

// since returns what has been used since another use, for each of n cycles.
func (u usage) since(from usage, n int) usage {
	return usage{(u.redis - from.redis) / n, (u.sent - from.sent) / n, (u.received - from.received) / n, (u.cpu - from.cpu) / time.Duration(n)}
}

// perByte returns the bytes of Redis that the client does not receive, for each byte that it sends,
// and the CPU for each byte that it sends or receives.
func (u usage) perByte() (redis int, cpu time.Duration) {
	return max(0, u.redis-u.received) / u.sent, u.cpu / time.Duration(u.sent+u.received)
}

// withinRates reports whether no byte costs more than one may.
func (u usage) withinRates() bool {
	redis, cpu := u.perByte()
	return redis <= mostRedisPerByte && cpu <= mostCPUPerByte
}

// redisCPU returns how much CPU Redis has used.
func redisCPU(ctx context.Context, t *testing.T) (sum time.Duration) {
	t.Helper()
	info, err := redisServer.Client(t).Info(ctx, "cpu").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		for _, name := range []string{"used_cpu_user:", "used_cpu_sys:"} {
			if text, ok := strings.CutPrefix(line, name); ok {
				seconds, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
				if err != nil {
					t.Fatal(err)
				}
				sum += time.Duration(seconds * float64(time.Second))
			}
		}
	}
	return sum
}

// cpuOf returns how much CPU the threads of a process have used.
func cpuOf(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		ns, _, _ := strings.Cut(string(text), " ")
		n, err := strconv.ParseInt(ns, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(n)
	}
	return sum
}

// A costlyClient sends messages one after the other.
type costlyClient struct {
	*attacker
	ref, sent, received int // the last ref, and bytes

	values map[string]string // for placeholders in messages, by name
}

// ask sends a message and waits for its answer, if it has one. It returns the code of an error.
func (c *costlyClient) ask(t *testing.T, message string) (code string) {
	t.Helper()
	c.ref++
	text := fmt.Sprintf(c.filled(message), c.ref)
	c.sent += len(text) + 1
	c.send(text)
	for !strings.HasPrefix(text, `{"type":"here"`) {
		line, err := c.readMessage()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		c.received += len(line)
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Type == "closing":
			t.Fatalf("%s: %s", text, line)
		case e.Ref != int64(c.ref):
		default:
			var document struct {
				ID      string
				Version int64
			}
			_ = json.Unmarshal(e.Data, &document) // not all answers are documents
			c.keep("id", document.ID)
			c.keep("version", fmt.Sprint(document.Version))
			return e.Code
		}
	}
	return ""
}

// filled returns a message with the values of its placeholders.
func (c *costlyClient) filled(message string) string {
	for name, value := range c.values {
		message = strings.ReplaceAll(message, "$"+name, value)
	}
	return message
}

// keep sets a value for the placeholders of later messages, unless it is empty.
func (c *costlyClient) keep(name, value string) {
	if c.values == nil {
		c.values = map[string]string{}
	}
	if value != "" {
		c.values[name] = value
	}
}

// documentedCost returns the bytes from Redis in the row of a message in the documentation.
func documentedCost(t *testing.T, name string) int {
	t.Helper()
	page, err := os.ReadFile("../../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, found := strings.Cut(string(page), "\n| "+name+" |")
	cells := strings.SplitN(row, "|", 4)
	if !found || len(cells) < 4 {
		t.Fatalf("docs/access.md has no row of %s", name)
	}
	n, err := strconv.Atoi(strings.TrimSpace(cells[2]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCostOfMessages measures what the costliest messages make Redis send and what CPU they take,
// without the rates of the connection and of the user. The table of docs/access.md has a row for
// each of them, and no message may cost much more than its row says. With -v it prints the table.
func TestCostOfMessages(t *testing.T) {
	i := newIssuer(t)
	s := newQuietScenarioOf(t, i, costSettings, fmt.Sprintf("  anonymous: true\n  hs256_secret: %s", i.shared))
	s.makeCostlyData(t)
	t.Log("| message | sent | received | Redis | CPU | Redis per byte | CPU per byte |")
	for _, m := range costlyMessages {
		t.Run(m.name, func(t *testing.T) {
			c := &costlyClient{attacker: s.connectUser(t, endpoints[0], "mallory")}
			for _, channel := range []string{"hall:x", "hall:long", "hall:large", "state:full"} {
				c.ask(t, `{"type":"subscribe","ref":%d,"channel":"`+channel+`"}`)
			}
			s.measure(t, m, c, func(text string) string { return c.ask(t, text) })
		})
	}
	for _, m := range costlyCalls {
		t.Run(m.name, func(t *testing.T) {
			c := &costlyClient{}
			s.measure(t, m, c, func(text string) string { return c.call(t, s, text) })
		})
	}
}

// measure measures what a message costs.
func (s *scenario) measure(t *testing.T, m costlyMessage, c *costlyClient, ask func(text string) (code string)) {
	t.Helper()
	if m.prepare != nil {
		m.prepare(t, s, c)
	}
	for _, text := range m.first {
		if code := ask(text); code != "" && code != "conflict" {
			t.Fatalf("%s: %s", text, code)
		}
	}
	var u usage
	codes := map[string]int{}
	mostRedis := documentedCost(t, m.name)*3/2 + 4096
	for window := range mostCostWindows {
		if window >= costWindows && u.redis <= mostRedis && u.withinRates() {
			break
		}
		before := s.use(t, c)
		for range costCycles {
			for _, text := range m.cycle {
				codes[ask(text)]++
			}
		}
		switch w := s.use(t, c).since(before, costCycles); {
		case window == 0:
			u = w
		case w.redis-w.received < u.redis-u.received:
			w.cpu = min(u.cpu, w.cpu)
			u = w
		default:
			u.cpu = min(u.cpu, w.cpu)
		}
	}
	redis, cpu := u.perByte()
	t.Logf("| %s | %d | %d | %d | %d | %d | %.1f | %v", m.name, u.sent, u.received, u.redis, u.cpu.Microseconds(), redis, float64(cpu.Nanoseconds())/1000, codes)
	if u.redis > mostRedis {
		t.Errorf("Redis sends %d bytes, and by the documentation at most %d", u.redis, mostRedis)
	}
	if !u.withinRates() {
		t.Errorf("it costs too much; the codes of the answers: %v", codes)
	}
}
