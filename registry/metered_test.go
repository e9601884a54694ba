package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchboard/internal/meter"
)

// testMetered checks that what a call reads counts in its Meter.
func testMetered(t *testing.T, s store) {
	ok(t, s.Join(t.Context(), Server{ID: "a"}))
	var change PresenceChange
	for i := range 10 {
		client := fmt.Sprint("u/", i)
		change.Join = append(change.Join, Member{Client: client, User: "u", Info: json.RawMessage(`"` + strings.Repeat("x", 998) + `"`)})
		ok(t, bindUser(t.Context(), s, "u", Binding{Client: client, Server: "a", Generation: 1}))
	}
	ok(t, s.ChangePresence(t.Context(), "a", []RosterChange{{Channel: "c", PresenceChange: change}})[0].Err)
	for name, c := range map[string]struct {
		from, to int
		read     func(ctx context.Context) error
	}{
		"roster": {10_000, 12_000, func(ctx context.Context) error {
			_, err := s.Roster(ctx, "a", "c")
			return err
		}},
		"pages of a roster": {10_000, 30_000, func(ctx context.Context) error { // HSCAN may return a member twice
			for cursor := ""; ; {
				_, next, err := s.RosterPage(ctx, "a", "c", cursor, 2)
				if cursor = next; err != nil || next == "" {
					return err
				}
			}
		}},
		"user": {100, 600, func(ctx context.Context) error {
			_, err := s.User(ctx, "u")
			return err
		}},
		"users": {100, 600, func(ctx context.Context) error {
			_, err := s.Users(ctx, []string{"u", "v"})
			return err
		}},
	} {
		m := new(meter.Meter)
		ctx := meter.With(t.Context(), m)
		ok(t, c.read(ctx))
		if n := m.Bytes(); n < c.from || n > c.to {
			t.Errorf("%s: %d bytes count, want %d to %d", name, n, c.from, c.to)
		}
	}
}
