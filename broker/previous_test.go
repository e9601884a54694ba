package broker_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// previousEntry is an entry of a log as the release before authors and erasures decoded it. It
// ignores the members that it does not know. Do not change it: brokers of that release run beside
// new ones during an upgrade.
type previousEntry struct {
	Cleared bool                       `json:"cleared,omitempty"`
	Gone    map[string]string          `json:"gone,omitempty"`
	Del     []string                   `json:"del,omitempty"`
	Set     map[string]json.RawMessage `json:"set,omitempty"`
	Until   map[string]int64           `json:"until,omitempty"`
	Away    map[string]int64           `json:"away,omitempty"`
	Back    []string                   `json:"back,omitempty"`
	Own     map[string][]string        `json:"own,omitempty"`
	By      string                     `json:"by,omitempty"`
	Data    json.RawMessage            `json:"data,omitempty"`
}

// readAsPrevious reads the log with a key as that release did, and returns what its clients
// received: the data of messages, and the fields that they set.
func readAsPrevious(t *testing.T, rdb redis.UniversalClient, key string) (shown []string) {
	t.Helper()
	members, err := rdb.ZRange(t.Context(), key, 0, -1).Result()
	if err != nil || len(members) == 0 {
		t.Fatalf("the log has %d members: %v", len(members), err)
	}
	var last int64
	for _, member := range members {
		digits, data, found := strings.Cut(member, ":")
		id, err := strconv.ParseInt(digits, 10, 64)
		control := func(r rune) bool { return r < ' ' }
		if !found || err != nil || id <= last || digits[0] == '0' || strings.ContainsFunc(data, control) {
			t.Fatalf("that release skips the member %q", member)
		}
		last = id
		text, isEntry := strings.CutPrefix(data, "~")
		if !json.Valid([]byte(text)) {
			t.Fatalf("that release skips the member %q", member)
		}
		if !isEntry {
			shown = append(shown, data)
			continue
		}
		var e previousEntry
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Fatalf("that release cannot decode %q: %v", member, err)
		}
		for name, value := range e.Set {
			shown = append(shown, fmt.Sprintf("%s=%s", name, value))
		}
		if e.Data != nil {
			shown = append(shown, string(e.Data))
		}
	}
	return shown
}

// TestPreviousRelease checks what a broker of the previous release shows of messages with authors
// and excluded clients in the same Redis, before and after they are erased. It loses no message and
// no field, and shows nothing that was erased.
func TestPreviousRelease(t *testing.T) {
	rdb := shared.Client(t)
	s, prefix := redisStore(t, rdb, testBeat)
	i := start(t, s, nil)
	c := dialers["tcp"](t, i)
	c.connect("phone", "alice")
	ids := []any{i.push(t, `{"channel":"news","data":"secret of the backend"}`)["id"]}
	c.send(`{"type":"publish","channel":"news","data":"secret of a client","ref":5}`)
	ids = append(ids, c.expect(object{"type": "published", "ref": 5})["id"])
	ids = append(ids, i.push(t, `{"channel":"news","data":"secret for others","exclude":"alice/phone"}`)["id"])
	ids = append(ids, i.push(t, `{"channel":"news","data":"secret with a field","set":{"turn":"amy"}}`)["id"])
	i.push(t, `{"channel":"news","data":"stays"}`)
	before := readAsPrevious(t, rdb, prefix+"mq_ch_{news}")
	want := []string{`"secret of the backend"`, `"secret of a client"`, `"secret for others"`, `turn="amy"`, `"secret with a field"`, `"stays"`}
	if !slices.Equal(before, want) {
		t.Errorf("before the erasures it shows %q, want %q", before, want)
	}
	for _, id := range ids {
		i.erase(t, "news", id)
	}
	i.push(t, `{"channel":"news","data":"later"}`)
	after := readAsPrevious(t, rdb, prefix+"mq_ch_{news}")
	if want := []string{`turn="amy"`, `"stays"`, `"later"`}; !slices.Equal(after, want) {
		t.Errorf("after the erasures it shows %q, want %q", after, want)
	}
}
