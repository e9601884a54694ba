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
	// costCycles is how often a cycle is repeated in each of costWindows. The cheapest window counts:
	// the broker's own work and counts that are kept for a second are in the others.
	costCycles, costWindows = 10, 3
)

// A costlyMessage is a message of a client, or several that it sends in turn, which make the store
// read more than the client sends.
type costlyMessage struct {
	name  string
	cycle []string
}

// costlier are the messages that cost more, with the most that they may cost. Add none: bound what
// the message reads.
var costlier = map[string]struct {
	redis int
	cpu   time.Duration
}{
	"subscribe to old messages":         {redis: 700},
	"subscribe to a state":              {redis: 1100},
	"subscribe to a presence":           {redis: 1200, cpu: 40 * time.Microsecond},
	"presence":                          {redis: 3000}, // it counts the users, at most once a second
	"room.get":                          {redis: 1600},
	"room.join of a full room":          {redis: 1800, cpu: 80 * time.Microsecond},
	"room.create of a room that exists": {redis: 3200},
	"room.lock of another owner":        {redis: 1600},
	"room.mine":                         {redis: 900},
	"hold.mine":                         {cpu: 80 * time.Microsecond},
	"hold.hold of taken seats":          {cpu: 40 * time.Microsecond},
}

// costlyMessages are the costliest messages of each kind, for the data of makeCostlyData.
var costlyMessages = []costlyMessage{
	{"publish", []string{`{"type":"publish","ref":%d,"channel":"hall:x","data":1}`}},
	{"publish to a full group", []string{`{"type":"publish","ref":%d,"channel":"state:full","set":{"seat/x":1}}`}},
	{"publish with conditions", []string{`{"type":"publish","ref":%d,"channel":"state:full","if":{` + manyConditions() + `},"set":{"x":1}}`}},
	{"history", []string{`{"type":"history","ref":%d,"channel":"hall:long"}`}},
	{"page of a state", []string{`{"type":"state","ref":%d,"channel":"state:full"}`}},
	{"subscribe to old messages", []string{
		`{"type":"subscribe","ref":%d,"channel":"hall:old","after":1}`, `{"type":"unsubscribe","ref":%d,"channel":"hall:old"}`,
	}},
	{"subscribe to a state", []string{
		`{"type":"subscribe","ref":%d,"channel":"state:x","state":"seat/x"}`, `{"type":"unsubscribe","ref":%d,"channel":"state:x"}`,
	}},
	{"subscribe to a presence", []string{
		`{"type":"subscribe","ref":%d,"channel":"hall:watched","presence":true}`, `{"type":"unsubscribe","ref":%d,"channel":"hall:watched"}`,
	}},
	{"presence", []string{`{"type":"presence","ref":%d,"channel":"hall:large"}`}},
	{"here", []string{`{"type":"here","ref":%d,"channel":"hall:x","data":1}`, `{"type":"ping","ref":%d}`}},
	{"room.list that finds nothing", method("room.list", `{"free":499}`)},
	{"room.list", method("room.list", `{"limit":100}`)},
	{"room.get", method("room.get", `{"room":"big"}`)},
	{"room.join of a full room", method("room.join", `{"room":"big"}`)},
	{"room.create of a room that exists", method("room.create", `{"id":"big","mode":"duel"}`)},
	{"room.lock of another owner", method("room.lock", `{"room":"big"}`)},
	{"room.mine", method("room.mine", `{"limit":100}`)},
	{"hold.resources", method("hold.resources", `{"resources":[`+strings.Repeat(`"hall",`, 99)+`"hall"]}`)},
	{"hold.mine", method("hold.mine", `{"resource":"hall"}`)},
	{"hold.hold of taken seats", method("hold.hold", `{"resource":"hall","seats":["A1"]}`)},
	{"hold.get", method("hold.get", `{"resource":"hall","id":"x"}`)},
	{"board.top", method("board.top", `{"board":"b","limit":100}`)},
	{"board.around", method("board.around", `{"board":"b","player":"p100","limit":50}`)},
	{"scene.get", method("scene.get", `{"scene":"town"}`)},
	{"scene.list", method("scene.list", `{"world":"w","limit":100}`)},
	{"avatar.list", method("avatar.list", `{"limit":100}`)},
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
}

// ask sends a message and waits for its answer, if it has one. It returns the code of an error.
func (c *costlyClient) ask(t *testing.T, message string) (code string) {
	t.Helper()
	c.ref++
	text := fmt.Sprintf(message, c.ref)
	c.sent += len(text) + 1
	c.send(text)
	for !strings.HasPrefix(text, `{"type":"here"`) {
		line, err := c.in.ReadBytes('\n')
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
		case e.Type == "error":
			return e.Code
		default:
			return ""
		}
	}
	return ""
}

// TestCostOfMessages measures what the costliest messages make Redis send and what CPU they take,
// without the rates of the connection. With -v it prints the table of docs/access.md.
func TestCostOfMessages(t *testing.T) {
	s := newQuietScenario(t, costSettings, "")
	s.makeCostlyData(t)
	t.Log("| message | sent | received | Redis | CPU | Redis per byte | CPU per byte |")
	for _, m := range costlyMessages {
		t.Run(m.name, func(t *testing.T) {
			c := &costlyClient{attacker: s.connectUser(t, endpoints[0], "mallory")}
			for _, channel := range []string{"hall:x", "hall:long", "hall:large", "state:full"} {
				c.ask(t, `{"type":"subscribe","ref":%d,"channel":"`+channel+`"}`)
			}
			var u usage
			codes := map[string]int{}
			for window := range costWindows {
				before := s.use(t, c)
				for range costCycles {
					for _, text := range m.cycle {
						codes[c.ask(t, text)]++
					}
				}
				if w := s.use(t, c).since(before, costCycles); window == 0 {
					u = w
				} else {
					u = usage{min(u.redis, w.redis), min(u.sent, w.sent), min(u.received, w.received), min(u.cpu, w.cpu)}
				}
			}
			redis, cpu := u.perByte()
			t.Logf("| %s | %d | %d | %d | %v | %d | %v |", m.name, u.sent, u.received, u.redis, u.cpu.Round(10*time.Microsecond), redis, cpu.Round(100*time.Nanosecond))
			if redis > max(mostRedisPerByte, costlier[m.name].redis) || cpu > max(mostCPUPerByte, costlier[m.name].cpu) {
				t.Errorf("it costs too much; the codes of the answers: %v", codes)
			}
		})
	}
}
