package hold_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"switchboard/kit"
	"switchboard/kit/hold"
)

// TestDocCommands runs every curl command of docs/holds.md.
func TestDocCommands(t *testing.T) {
	page, err := os.ReadFile("../../docs/holds.md")
	ok(t, err)
	var commands []string
	for line := range strings.Lines(string(page)) {
		if command, found := strings.CutPrefix(line, "    curl"); found {
			commands = append(commands, "curl"+command)
		}
	}
	wants := []string{
		`"capacity":21,"seats":["A1..A20","box-left"],"sold":0,"held":0,"free":21}`, `"seats":["A1","A2"],"state":"held"`,
		`"state":"sold"`, `"state":"released"`, `"sold":0,"held":0,"free":21}`,
	}
	equal(t, "commands", len(commands), len(wants))
	over(t, hold.Options{}, func(s *setup) {
		for i, command := range commands {
			command = strings.ReplaceAll(command, "127.0.0.1:8080", s.At(i).HTTP)
			answer, err := exec.CommandContext(s.t.Context(), "bash", "-c", command).Output()
			if err != nil || !strings.Contains(string(answer), wants[i]) {
				s.t.Fatalf("%s: %s %v, want %s", command, answer, err, wants[i])
			}
		}
	})
}

// TestCost checks the table of docs/holds.md.
func TestCost(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		if !s.Memory {
			s.t.Skip("the calls are those of the queue in memory")
		}
		t, ctx, h := s.t, s.t.Context(), s.at(0)
		for _, op := range []struct {
			name           string
			reads, changes int64
			call           func() (*hold.Hold, error)
		}{
			{"put", 2, 1, func() (*hold.Hold, error) { s.put(hold.Resource{Capacity: 100}); return nil, nil }},
			{"hold", 1, 1, func() (*hold.Hold, error) {
				return h.Hold(ctx, show, hold.TakeRequest{ID: "a", User: "bob", Count: 10})
			}},
			{"repeated hold", 1, 0, func() (*hold.Hold, error) {
				return h.Hold(ctx, show, hold.TakeRequest{ID: "a", User: "bob", Count: 10})
			}},
			{"renew", 1, 1, func() (*hold.Hold, error) { s.Advance(1e9); return h.Renew(ctx, hold.Change{Resource: show, ID: "a"}) }},
			{"confirm", 1, 1, func() (*hold.Hold, error) { return h.Confirm(ctx, hold.Change{Resource: show, ID: "a"}) }},
			{"sell", 1, 1, func() (*hold.Hold, error) { return h.Sell(ctx, show, hold.TakeRequest{User: "bob", Count: 1}) }},
			{"release", 1, 1, func() (*hold.Hold, error) { return h.Release(ctx, hold.Change{Resource: show, ID: "a"}) }},
			{"repeated release", 1, 0, func() (*hold.Hold, error) { return h.Release(ctx, hold.Change{Resource: show, ID: "a"}) }},
			{"get", 1, 0, func() (*hold.Hold, error) { return h.Get(ctx, show, "a") }},
			{"holds of a user", 3, 0, func() (*hold.Hold, error) { _, err := h.Of(ctx, show, "bob"); return nil, err }},
			{"a page of the holds of a resource", 1, 0, func() (*hold.Hold, error) {
				_, err := h.ListHolds(ctx, show, hold.HoldQuery{})
				return nil, err
			}},
			{"availability", 1, 0, func() (*hold.Hold, error) {
				_, err := h.Statuses(ctx, []string{show, "a", "b"})
				return nil, err
			}},
			{"delete", 1, 1, func() (*hold.Hold, error) { return nil, h.Delete(ctx, show, kit.Match{}) }},
		} {
			reads, changes := s.Reads.Load(), s.Changes.Load()
			_, err := op.call()
			ok(t, err)
			equal(t, op.name, fmt.Sprint(s.Reads.Load()-reads, s.Changes.Load()-changes), fmt.Sprint(op.reads, op.changes))
		}
	})
}
