package delivery

import (
	"context"
	"slices"

	"switchboard/queue"
)

// FieldEnds makes the backend receive an event when fields of a channel end.
type FieldEnds interface {
	// Track is called before updates of the channels' states. It returns one error for each channel,
	// in their order. If it is not nil, the update of that channel is refused and not stored.
	Track(ctx context.Context, channels []string) []error
	// Changed is called after changes of the channels' states. changes are in the order of channels.
	Changed(ctx context.Context, channels []string, changes []queue.Appended)
}

// trackedChanges collects stored changes of states, to report them to FieldEnds in one call.
type trackedChanges struct {
	*Pusher
	channels []string
	changes  []queue.Appended
}

// tracks reports whether FieldEnds is called for a channel.
func (p *Pusher) tracks(channel string) bool {
	return p.opts.FieldEnds != nil && p.opts.TracksFields(channel)
}

// track calls FieldEnds.Track before a push to a channel.
func (p *Pusher) track(ctx context.Context, channel string, payload Payload) error {
	if payload.Update == nil || !p.tracks(channel) {
		return nil
	}
	return p.opts.FieldEnds.Track(ctx, []string{channel})[0]
}

// trackAll calls FieldEnds.Track before pushes to channels. It returns those that may be stored,
// and finishes the others with their error.
func (p *Pusher) trackAll(ctx context.Context, pushes []*Push) []*Push {
	var channels []string
	var tracked []*Push
	for _, push := range pushes {
		if push.Update != nil && p.tracks(push.Name) {
			channels, tracked = append(channels, push.Name), append(tracked, push)
		}
	}
	if len(tracked) == 0 {
		return pushes
	}
	refused := map[*Push]bool{}
	for i, err := range p.opts.FieldEnds.Track(ctx, channels) {
		if err != nil {
			tracked[i].finish(err)
			refused[tracked[i]] = true
		}
	}
	if len(refused) == 0 {
		return pushes
	}
	return slices.DeleteFunc(slices.Clone(pushes), func(push *Push) bool { return refused[push] })
}

// add adds a change, if it is to be reported.
func (t *trackedChanges) add(channel string, a queue.Appended) {
	if t.tracks(channel) {
		t.channels, t.changes = append(t.channels, channel), append(t.changes, a)
	}
}

// report reports the changes.
func (t *trackedChanges) report(ctx context.Context) {
	if len(t.channels) > 0 {
		t.opts.FieldEnds.Changed(ctx, t.channels, t.changes)
	}
}
