package events

import "context"

// Translate makes events of fields that have ended, for channels that a system keeps: its own
// events take the place of fields_gone. ours is false for other channels. It may be called again
// with the same messages, and must then return the same events.
type Translate func(ctx context.Context, channel string, messages []EndedMessage) (events []OwnEvent, ours bool, err error)

// OwnEvent is an event of a Translate function.
type OwnEvent struct {
	Kind    Kind
	Message int64  // id of the message in the channel's log
	Name    string // unique among the events of the message, such as the name of a field
	Body    any    // is encoded as a JSON object; it has the member type, and neither id nor at
}

// endedEvents returns the events about the messages of a channel.
func (d *Dispatcher) endedEvents(ctx context.Context, channel string, messages []EndedMessage) (list []NewEvent, err error) {
	if d.opts.Translate != nil && len(messages) > 0 {
		events, ours, err := d.opts.Translate(ctx, channel, messages)
		for _, e := range events {
			if d.wants(e.Kind) {
				list = append(list, NewEvent{ID: hash(byLogID, channel, decimal(e.Message), e.Name), Body: body(e.Body)})
			}
		}
		if ours || err != nil {
			return list, err
		}
	}
	for _, m := range messages {
		if d.wants(FieldsGone) {
			list = append(list, NewEvent{
				ID:   hash(byLogID, channel, decimal(m.ID)), // the same in a repeated check
				Body: body(fieldsEvent{Type: FieldsGone, Channel: channel, Message: m.ID, Cleared: m.Cleared, Gone: m.Gone}),
			})
		}
	}
	return list, nil
}
