package presence

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/meter"
	"switchboard/registry"
)

// fill makes a channel have members on the servers, with infos of a KiB.
func fill(t *testing.T, store *registry.Memory, channel string, members int, servers ...string) {
	t.Helper()
	for _, server := range servers {
		var change registry.PresenceChange
		for i := range members {
			change.Join = append(change.Join, registry.Member{
				Client: fmt.Sprintf("%s-%04d", server, i), Info: json.RawMessage(`"` + strings.Repeat("x", 1022) + `"`),
			})
		}
		err := store.BindChannel(t.Context(), server, channel)
		if err == nil {
			err = store.ChangePresence(t.Context(), server, []registry.RosterChange{{Channel: channel, PresenceChange: change}})[0].Err
		}
		if err == nil {
			err = store.Join(t.Context(), registry.Server{ID: server})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPagesByBytes checks that pages end at their bytes, that they have each member, and what
// counts in the Meter of the call.
func TestPagesByBytes(t *testing.T) {
	store := registry.NewMemory(registry.Options{})
	fill(t, store, "c", 100, "a", "b")
	p := New(Options{Store: store, ServerID: func() string { return "a" }})
	seen := map[string]bool{}
	const most = 16 << 10
	for cursor, pages := "", 0; ; pages++ {
		m := new(meter.Meter)
		page, err := p.Page(meter.With(t.Context(), m), "c", cursor, 256, most)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range page.Members {
			seen[one.Client] = true
		}
		if n := sizeOf(page.Members); n > most+firstMembers<<10 || pages > 0 && m.Bytes() > 3*most {
			t.Errorf("page %d has %d bytes, and %d were read", pages, n, m.Bytes())
		}
		if pages == 0 && m.Bytes() < 200<<10 {
			t.Errorf("%d bytes count for a page with a count of the users", m.Bytes())
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if len(seen) != 200 {
		t.Errorf("the pages have %d members", len(seen))
	}
	if page, err := p.Page(t.Context(), "c", "", 256, 0); err != nil || len(page.Members) != 200 {
		t.Errorf("without a limit of bytes: %d members, %v", len(page.Members), err)
	}
}
