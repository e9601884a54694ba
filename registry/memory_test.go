package registry

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestMemoryRemovesExpiredUsers checks that new users make Memory remove expired ones.
func TestMemoryRemovesExpiredUsers(t *testing.T) {
	now := time.Now()
	m := NewMemory(Options{Now: func() time.Time { return now }})
	for i := range 1000 {
		ok(t, bindUser(t.Context(), m, fmt.Sprint("old-", i), Binding{"phone", "a", 1}))
	}
	now = now.Add(m.opts.UserTTL)
	for i := range 1000 {
		ok(t, bindUser(t.Context(), m, fmt.Sprint("new-", i), Binding{"phone", "a", 1}))
	}
	if n := len(m.users); n > 1500 {
		t.Errorf("%d users are kept, 1000 of them live", n)
	}
}

// TestMemoryChannelServersAreStable checks that a returned slice does not change with later
// bindings, and that a caller may append to it.
func TestMemoryChannelServersAreStable(t *testing.T) {
	m := NewMemory(Options{})
	bind := func(server string) { ok(t, m.BindChannel(t.Context(), server, "news")) }
	servers := func() []string {
		list, err := m.ChannelServers(t.Context(), "news")
		ok(t, err)
		return list
	}
	unbind := func(server string) { ok(t, m.UnbindChannel(t.Context(), server, "news")) }
	returned := map[string][]string{}
	for _, step := range []struct {
		do           func(server string)
		server, want string
	}{
		{bind, "b", "b"}, {bind, "d", "b d"}, {bind, "d", "b d"}, {bind, "c", "b c d"}, {bind, "a", "a b c d"},
		{unbind, "b", "a c d"}, {unbind, "unknown", "a c d"}, {bind, "e", "a c d e"}, {unbind, "e", "a c d"},
	} {
		step.do(step.server)
		returned[step.want] = servers()
		_ = append(returned[step.want], "x")
	}
	for want, got := range returned {
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %s", got, want)
		}
	}
	for _, server := range []string{"a", "c", "d"} {
		ok(t, m.UnbindChannel(t.Context(), server, "news"))
	}
	if got := servers(); got != nil || len(m.channels) > 0 {
		t.Errorf("%q are left, and %d channels", got, len(m.channels))
	}
}

func BenchmarkMemoryChannelServers(b *testing.B) {
	m := NewMemory(Options{})
	if err := m.BindChannel(b.Context(), "me", "news"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if servers, _ := m.ChannelServers(b.Context(), "news"); len(servers) != 1 {
			b.Fatal(servers)
		}
	}
}
