package truth

import (
	"context"

	"switchboard/events"
	"switchboard/internal/state"
	"switchboard/queue"
)

const (
	// logsAtATime is how many logs are read in one round trip.
	logsAtATime = 16
	// logPage and logPageBytes limit the page of one log. 16 pages have at most 4 MiB.
	logPage      = 1000
	logPageBytes = 256 << 10
	// maxMessages and maxNames limit the messages of one check. The rest follows in the next check.
	maxMessages, maxNames = 100, 5000
)

// EndFields implements events.Truth. The log is read before the state, so a state is empty only if
// no message up to its last id is missing.
func (t Truth) EndFields(ctx context.Context, positions []events.FieldsPosition) []events.EndedFields {
	ended, channels := make([]events.EndedFields, len(positions)), make([]string, len(positions))
	steps := make([]queue.StateStep, len(positions))
	for i, p := range positions {
		channels[i], steps[i] = p.Channel, queue.StateStep{Channel: p.Channel, Kind: queue.Sweep}
	}
	for i, o := range t.queue.StepStates(ctx, steps) {
		ended[i].Err = o.Err
	}
	for from := 0; from < len(positions); from += logsAtATime {
		to := min(from+logsAtATime, len(positions))
		t.readLogs(ctx, positions[from:to], ended[from:to])
	}
	for i, s := range t.Fields(ctx, channels) {
		if ended[i].Err == nil {
			ended[i].FieldsState = s
		}
	}
	return ended
}

// Fields implements events.Truth.
func (t Truth) Fields(ctx context.Context, channels []string) []events.FieldsState {
	reads := make([]queue.StateRead, len(channels))
	for i, channel := range channels {
		reads[i] = queue.StateRead{Channel: channel, Limit: 1}
	}
	states := make([]events.FieldsState, len(channels))
	for i, o := range t.queue.ReadStates(ctx, reads) {
		states[i] = events.FieldsState{Last: o.Value.ID, Due: o.Value.Due, Empty: len(o.Value.Fields) == 0, Err: o.Err}
	}
	return states
}

// readLogs reads the logs after the positions: the first page of all in one round trip.
func (t Truth) readLogs(ctx context.Context, positions []events.FieldsPosition, ended []events.EndedFields) {
	reads := make([]queue.ChannelRead, len(positions))
	for i, p := range positions {
		reads[i] = queue.ChannelRead{Channel: p.Channel, After: p.After, Limit: logPage, Bytes: logPageBytes}
	}
	for i, o := range t.queue.ReadChannels(ctx, reads) {
		names := 0
		for ended[i].Err == nil {
			if ended[i].Err = o.Err; o.Err != nil {
				break
			}
			reads[i].After, names = addMessages(&ended[i], o.Value, reads[i].After, names)
			if !ended[i].More || len(ended[i].Messages) >= maxMessages || names >= maxNames {
				break
			}
			o = t.queue.ReadChannels(ctx, reads[i:i+1])[0]
		}
	}
}

// addMessages adds the messages of a page about fields that have ended. after is the position of
// the page. It returns the position after the page, and adds the number of names to names.
func addMessages(ended *events.EndedFields, page queue.Page, after int64, names int) (int64, int) {
	before := after
	for _, m := range page.Messages {
		if m.ID <= after { // the store lost messages, and the page begins at an older one
			continue
		}
		after = m.ID
		if !state.IsEntry(m.Data) {
			continue
		}
		entry, err := state.DecodeEntry(m.Data)
		if err != nil || !entry.Cleared && len(entry.Gone) == 0 {
			continue
		}
		names += len(entry.Gone)
		ended.Messages = append(ended.Messages, events.EndedMessage{ID: m.ID, Cleared: entry.Cleared, Gone: entry.Gone})
	}
	if ended.More = page.More && after > before; !ended.More {
		after = max(after, page.Last)
	}
	ended.Upto = after
	return after, names
}
