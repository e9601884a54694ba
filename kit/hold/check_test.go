package hold_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/hold"
	"switchboard/kit/index"
)

// spoilt are changes by hand of a resource with the seats A1 to A3, of which A1 is held by bob with
// the id h, and A2 is sold with the id s. Each has the problems that the check must find.
var spoilt = map[string]struct {
	ops      []state.Op
	problems []string
}{
	"fine":        {},
	"freed":       {[]state.Op{{Field: "seat/A1", Kind: state.Delete}}, []string{"seat A1 of h, which is held, is free"}},
	"unknown":     {[]state.Op{set("seat/A3", `{"s":"held"}`)}, []string{"seat A3 is taken, but no hold or sale has it"}},
	"unconfirmed": {[]state.Op{set("seat/A1", `{"s":"sold"}`)}, []string{"seat A1 does not end with h, which is held"}},
	"endless":     {[]state.Op{set("seat/A1", `{"s":"held"}`)}, []string{"seat A1 does not end with h, which is held"}},
	"dead": {
		[]state.Op{{Field: "$$live:bob/h", Kind: state.Delete}},
		[]string{"hold h: the record says held, and that it is live is stored: false"},
	},
	"forgotten": {
		[]state.Op{{Field: "$$hold/h", Kind: state.Delete}},
		[]string{"hold h is live, but has no record", "seat A1 is taken, but no hold or sale has it"},
	},
	"small":   {[]state.Op{set("$resource", `{"capacity":1}`)}, []string{"more places than the capacity are taken"}},
	"removed": {[]state.Op{{Field: "$resource", Kind: state.Delete}}, []string{"there are fields, but no resource"}},
	"twice": {
		[]state.Op{set("$$hold/t", `{"seats":["A2"],"state":"sold"}`)},
		[]string{"seat A2 has two holds or sales"},
	},
}

func set(field, value string) state.Op {
	return state.Op{Field: field, Kind: state.Set, Value: []byte(value)}
}

// TestCheck spoils resources and their cards. The check finds each difference, and a round corrects
// the cards.
func TestCheck(t *testing.T) {
	lists := index.NewMemory()
	over(t, hold.Options{Index: lists}, func(s *setup) {
		if s.Memory {
			s.t.Skip("the janitor has no access to the memory of a broker")
		}
		t, ctx := s.t, s.t.Context()
		check := hold.Check(kit.CheckOptions{Index: lists, States: s.queue.(kit.States)})
		found := func() (problems []string) {
			list, err := check.Find(ctx)
			ok(t, err)
			for _, f := range list {
				if strings.HasPrefix(f.Subject, "hold:") {
					problems = append(problems, strings.TrimPrefix(f.Subject, "hold:")+": "+f.Problem)
				}
			}
			slices.Sort(problems)
			return problems
		}
		for name := range spoilt {
			_, err := s.at(0).Put(ctx, name, hold.PutRequest{Resource: hold.Resource{Seats: seats("A1..A3")}})
			ok(t, err)
			_, err = s.at(0).Hold(ctx, name, hold.TakeRequest{ID: "h", User: "bob", Seats: seats("A1")})
			ok(t, err)
			_, err = s.at(0).Sell(ctx, name, hold.TakeRequest{ID: "s", Seats: seats("A2")})
			ok(t, err)
		}
		ok(t, s.at(0).Round(ctx))
		equal(t, "problems before", found(), nil)

		var want []string
		for name, c := range spoilt {
			for _, p := range c.problems {
				want = append(want, name+": "+p)
			}
			if len(c.ops) == 0 {
				continue
			}
			u := &state.Update{Writer: state.BackendHolder, Ops: c.ops}
			_, err := s.hosts[0].Change(ctx, "hold:"+name, u, extension.ChangeOptions{})
			ok(t, err)
			ok(t, lists.Schedule(ctx, 0, name))
		}
		ok(t, s.at(1).Round(ctx))
		slices.Sort(want)
		equal(t, "problems", strings.Join(found(), "\n"), strings.Join(want, "\n"))
		for name := range spoilt {
			if name != "removed" && name != "fine" {
				ok(t, s.at(0).Delete(ctx, name, kit.Match{}))
			}
		}
		ok(t, s.at(0).Round(ctx))

		card := func(name string, version int64, list map[string]int64) {
			ok(t, lists.Put(ctx, index.Card{ID: name, Version: version, Lists: list, Data: []byte("{}")}))
		}
		cards, err := lists.Get(ctx, "fine")
		ok(t, err)
		card("fine", cards[0].Version+1, map[string]int64{"all": 0})
		card("none", cards[0].Version+1, map[string]int64{"all": 0})
		problems := []string{"fine: its card has other numbers of places", "none: it has a card, but there is no resource"}
		for _, p := range problems {
			if got := found(); !slices.Contains(got, p) {
				t.Errorf("found %q, want %q", got, p)
			}
		}
		card("fine", cards[0].Version+2, nil)
		if got := found(); !slices.Contains(got, "fine: it has no card") {
			t.Errorf("found %q, want no card", got)
		}
		restored, err := hold.Restore(kit.CheckOptions{Index: lists, States: s.queue.(kit.States)}).Do(ctx)
		ok(t, err)
		if restored < 1 {
			t.Errorf("%d resources were restored", restored)
		}
		ok(t, lists.Schedule(ctx, 0, "none"))
		ok(t, s.at(2).Round(ctx))
		equal(t, "problems after the round", fmt.Sprint(found()), "[removed: there are fields, but no resource]")
		ok(t, s.at(0).Delete(ctx, "fine", kit.Match{}))
		ok(t, s.at(0).Round(ctx))
	})
}
