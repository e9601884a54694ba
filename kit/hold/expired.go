package hold

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"switchboard/events"
	"switchboard/kit"
	"switchboard/queue"
)

// ExpiredEvent is the event of a hold that was not confirmed in time.
type ExpiredEvent struct {
	Type     events.Kind `json:"type"` // events.HoldExpired
	Resource string      `json:"resource"`
	Hold     string      `json:"hold"` // the id
	User     string      `json:"user,omitempty"`
	Seats    []string    `json:"seats"`
}

// Events returns a function for events.Options.Translate. It makes an ExpiredEvent of each hold
// that has expired. The record of the hold, which lives longer, has the user and the seats. They
// are missing if the record was forgotten or the resource was deleted meanwhile.
func Events(reader kit.StateReader) events.Translate {
	return func(ctx context.Context, channel string, messages []events.EndedMessage) ([]events.OwnEvent, bool, error) {
		resource, ours := strings.CutPrefix(channel, channelPrefix)
		if !ours {
			return nil, false, nil
		}
		var list []events.OwnEvent
		var records []string
		for _, m := range messages {
			for field := range m.Gone {
				if strings.HasPrefix(field, livePrefix) {
					e := &ExpiredEvent{Type: events.HoldExpired, Resource: resource, Hold: idOf(field), Seats: []string{}}
					list = append(list, events.OwnEvent{Kind: e.Type, Message: m.ID, Name: e.Hold, Body: e})
					records = append(records, recordField(e.Hold))
				}
			}
		}
		if len(list) == 0 {
			return nil, true, nil
		}
		slices.SortFunc(list, func(a, b events.OwnEvent) int { // the same order in a repeated call
			return strings.Compare(fmt.Sprint(a.Message, a.Name), fmt.Sprint(b.Message, b.Name))
		})
		return list, true, addFacts(ctx, reader, channel, records, list)
	}
}

// addFacts adds the users and the seats of the records to the events.
func addFacts(ctx context.Context, reader kit.StateReader, channel string, records []string, list []events.OwnEvent) error {
	page := reader.ReadStates(ctx, []queue.StateRead{{Channel: channel, Fields: records}})[0]
	if page.Err != nil {
		return fmt.Errorf("read the holds that expired in %s: %w", channel, page.Err)
	}
	byID := make(map[string]*record)
	for _, f := range page.Value.Fields {
		if r, err := parseRecord(f.Field); err == nil {
			byID[idOf(f.Name)] = r
		}
	}
	for _, own := range list {
		e := own.Body.(*ExpiredEvent)
		if r := byID[e.Hold]; r != nil {
			e.User, e.Seats = r.User, r.Seats
		}
	}
	return nil
}
