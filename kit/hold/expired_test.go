package hold_test

import (
	"encoding/json"
	"slices"
	"testing"

	"switchboard/events"
	"switchboard/internal/state"
	"switchboard/kit/hold"
)

// TestExpiredEvents checks the events of holds that were not confirmed in time: one for each, with
// the facts, and none of holds that were released or sold.
func TestExpiredEvents(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Seats: seats("A1..A9"), HoldMS: s.short.Milliseconds()})
		var last *hold.Hold
		for i, name := range seats("A1", "A2", "A3", "A4") {
			var err error
			last, err = s.at(i).Hold(ctx, show, hold.TakeRequest{ID: "h" + name, User: "user/" + name, Seats: seats(name)})
			ok(t, err)
		}
		_, err := s.at(0).Confirm(ctx, hold.Change{Resource: show, ID: "hA1"})
		ok(t, err)
		_, err = s.at(0).Release(ctx, hold.Change{Resource: show, ID: "hA2"})
		ok(t, err)
		s.pass(last)
		_, err = s.at(0).Sell(ctx, show, hold.TakeRequest{Seats: seats("A3")}) // finds the ended holds
		ok(t, err)

		page, err := s.hosts[0].History(ctx, "hold:"+show, 0, 1000)
		ok(t, err)
		var messages []events.EndedMessage
		for _, m := range page.Messages {
			entry, err := state.DecodeEntry(m.Data)
			ok(t, err)
			if len(entry.Gone) > 0 {
				messages = append(messages, events.EndedMessage{ID: m.ID, Gone: entry.Gone})
			}
		}
		translate := hold.Events(s.hosts[0])
		own, ours, err := translate(ctx, "hold:"+show, messages)
		ok(t, err)
		var got []string
		for _, e := range own {
			text, err := json.Marshal(e.Body)
			ok(t, err)
			got = append(got, string(text))
		}
		slices.Sort(got)
		equal(t, "events", got, []string{
			`{"type":"hold_expired","resource":"play-7","hold":"hA3","user":"user/A3","seats":["A3"]}`,
			`{"type":"hold_expired","resource":"play-7","hold":"hA4","user":"user/A4","seats":["A4"]}`,
		})
		if !ours {
			t.Error("the channel is not ours")
		}
		if _, ours, _ := translate(ctx, "room:1", messages); ours {
			t.Error("another channel is ours")
		}
	})
}
