package room

import (
	"context"
	"slices"

	"switchboard/broker/extension"
	"switchboard/broker/namespace"
)

// MaxPlayerFields is the most fields p/{n}/* of a member.
const MaxPlayerFields = 32

// Extension returns the rooms as an extension of the broker: methods for clients, HTTP calls, and
// the channels of rooms.
func (r *Rooms) Extension() extension.Extension {
	return extension.Extension{
		Name: "rooms", Methods: r.methods(), ClientCalls: r.clientCalls(), Calls: r.calls(),
		Channels: append(r.channels(), lobbyKind()), Run: r.Run, Metrics: append(r.budget.Metrics(), r.newCollector()),
		Owned: r.owned(),
	}
}

// channels returns the channels of rooms: those of each mode with rules, and all others.
func (r *Rooms) channels() []extension.ChannelKind {
	var list []extension.ChannelKind
	for name, m := range r.opts.Modes {
		if m.hasRules() {
			list = append(list, extension.ChannelKind{Rule: newRule(channelPrefix+name+":*", m), Authorize: r.authorize})
		}
	}
	return append(list, extension.ChannelKind{Rule: newRule(channelPrefix+"*", Mode{}), Authorize: r.authorize})
}

// newRule returns the namespace of the rooms of a mode. The store refuses what a user publishes
// that is not a member. Clients see the number of a member as the writer of a change, never a
// client id.
func newRule(name string, m Mode) namespace.Rule {
	shared := m.Fields
	if len(shared) == 0 {
		shared = []namespace.FieldRule{{Pattern: groupShared + "*", Write: namespace.Users}}
	}
	own := namespace.FieldRule{
		Pattern: groupPlayer + "{n}/*", Write: namespace.Users, Of: groupMember + "{n}", Max: MaxPlayerFields,
	}
	return namespace.Rule{
		Name: name, Subscribe: namespace.Users, Publish: namespace.Users, History: namespace.Users, State: namespace.Users,
		Presence: namespace.Users, HistoryAge: m.HistoryAge, StateKeep: namespace.KeepForever, Grace: m.Grace,
		Needs: groupUser + "{user}", By: groupUser + "{user}",
		Fields: append([]namespace.FieldRule{own}, shared...),
	}
}

// authorize lets the devices that have joined subscribe to a room, and all users to a public one,
// unless the mode is for members only. A device of a member that has not joined would keep its
// subscription when the membership ends with the other devices.
func (r *Rooms) authorize(ctx context.Context, client, user, channel string) error {
	id := channel[len(channelPrefix):]
	s, err := r.readMember(ctx, id, user, false)
	if err != nil || s.isOpen(r.mode(s).MembersOnly) {
		return err
	}
	if m := s.of(user); m != nil && slices.Contains(m.owners, client) {
		return nil
	}
	return errMembersOnly(id)
}
