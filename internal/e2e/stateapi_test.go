//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/internal/testbed"
)

// call sends a request to the API of a broker. It returns the status and the answer.
func call(ctx context.Context, t *testing.T, b *testbed.Broker, method, path, body string) (int, string) {
	t.Helper()
	status, text, err := b.Do(ctx, method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

// change pushes a change of fields, which must succeed.
func change(ctx context.Context, t *testing.T, b *testbed.Broker, body string) {
	t.Helper()
	if err := tryChange(ctx, b, body); err != nil {
		t.Fatal(err)
	}
}

func tryChange(ctx context.Context, b *testbed.Broker, body string) error {
	return b.Call(ctx, http.MethodPost, "/v1/push", body, nil)
}

// A field is a field of a page: its id, its value, and possibly its end and "away".
type field []json.RawMessage

func (f field) id() (id int64) {
	if len(f) > 0 {
		_ = json.Unmarshal(f[0], &id)
	}
	return id
}

// readState returns the fields of a channel that begin with prefix, all of one page.
func readState(ctx context.Context, t *testing.T, b *testbed.Broker, channel, prefix string) map[string]field {
	t.Helper()
	status, text := call(ctx, t, b, http.MethodGet, "/v1/channels/"+channel+"/state?limit=1000&prefix="+prefix, "")
	var page struct {
		Fields map[string]field
		Cursor string
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil || status != http.StatusOK || page.Cursor != "" {
		t.Fatalf("state of %s: %d %.500s (%v)", channel, status, text, err)
	}
	return page.Fields
}

// A stateMessage is a message that changes fields.
type stateMessage struct {
	Type    string
	Channel string
	ID      int64
	Cleared bool
	Gone    map[string]string
	Del     []string
	Set     map[string]json.RawMessage
	Until   map[string]int64
	Away    map[string]int64
	Back    []string
	By      string
}

// fieldIDs are the ids of fields by name.
type fieldIDs map[string]int64

// apply applies a message as docs/protocol.md says.
func (f fieldIDs) apply(m stateMessage) {
	if m.Cleared {
		clear(f)
	}
	for name := range m.Gone {
		delete(f, name)
	}
	for _, name := range m.Del {
		delete(f, name)
	}
	for name := range m.Set {
		f[name] = m.ID
	}
}

// group returns the fields of a group.
func (f fieldIDs) group(prefix string) fieldIDs {
	found := fieldIDs{}
	for name, id := range f {
		if strings.HasPrefix(name, prefix) {
			found[name] = id
		}
	}
	return found
}

// list returns the names and ids as Fields.list of state.js does.
func (f fieldIDs) list() string {
	pairs := [][2]any{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		pairs = append(pairs, [2]any{name, f[name]})
	}
	text, _ := json.Marshal(pairs)
	return string(text)
}

// readLog returns all messages of a channel from its history.
func readLog(ctx context.Context, t *testing.T, b *testbed.Broker, channel string) (all []stateMessage) {
	t.Helper()
	for after, more := int64(0), true; more; {
		status, text := call(ctx, t, b, http.MethodGet, fmt.Sprintf("/v1/channels/%s/history?limit=1000&after=%d", channel, after), "")
		var page struct {
			Messages []stateMessage
			More     bool
		}
		if err := json.Unmarshal([]byte(text), &page); err != nil || status != http.StatusOK {
			t.Fatalf("history of %s: %d %.500s (%v)", channel, status, text, err)
		}
		if all, more = append(all, page.Messages...), page.More; len(page.Messages) > 0 {
			after = page.Messages[len(page.Messages)-1].ID
		}
	}
	return all
}
