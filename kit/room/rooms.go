package room

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// Rooms is the rooms of a broker.
type Rooms struct {
	host   *extension.Host
	log    zerolog.Logger
	opts   Options // with all values set
	index  index.Index
	budget *budget.Budget

	pending pending
	makers  makers
	known   known
}

// New returns the rooms of a broker.
func New(host *extension.Host, o Options) (*Rooms, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Rooms{host: host, log: host.Logger(), opts: o, index: o.Index, pending: newPending(), known: newKnown()}
	r.budget = r.newBudget()
	return r, nil
}

// maxID leaves place for the prefix of the channel.
const maxID = wire.MaxName - len(channelPrefix)

// checkID returns an error if an id of a room is not valid.
func checkID(id string) error {
	if err := wire.CheckName("room", id); err != nil {
		return err
	}
	if len(id) > maxID || strings.ContainsAny(id, "*/") {
		return wire.Errorf(wire.BadRequest, "room: an id has at most %d bytes and neither * nor /", maxID)
	}
	return nil
}

// MaxPlayerFields is the most fields p/{n}/* of a member.
const MaxPlayerFields = 32

// Extension returns the rooms as an extension of the broker: methods for clients, HTTP calls, and
// the channels of rooms.
func (r *Rooms) Extension() extension.Extension {
	return extension.Extension{
		Name: "rooms", Methods: r.methods(), ClientCalls: r.clientCalls(), Calls: r.calls(),
		Channels: append(r.channels(), lobbyKind()), Run: r.Run, Metrics: append(r.budget.Metrics(), r.newCollector()),
		Owned: kit.Owned("rooms", r.budget, r.forget),
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

// newCollector returns the numbers of rooms and players.
func (r *Rooms) newCollector() prometheus.Collector {
	rooms := prometheus.NewDesc("switchboard_rooms", "Rooms by mode and status, in all brokers.", []string{"mode", "status"}, nil)
	players := prometheus.NewDesc("switchboard_room_players",
		"Players in rooms by mode, in all brokers, without reservations.", []string{"mode"}, nil)
	modes := slices.Sorted(maps.Keys(r.opts.Modes))
	statuses := []Status{Waiting, Playing, Finished}
	return kit.Gauges{
		Descs: []*prometheus.Desc{rooms, players},
		Count: func(ctx context.Context, set func(*prometheus.Desc, int, ...string)) {
			for _, mode := range modes {
				var lists []string
				for _, status := range statuses {
					list, _ := findList(orderCreated, attributes{mode: mode, status: string(status)})
					lists = append(lists, list)
				}
				for n := 1; n <= r.opts.Modes[mode].Capacity; n++ {
					lists = append(lists, fillList(mode, n))
				}
				counts, err := r.index.Count(ctx, lists...)
				if err != nil {
					continue
				}
				for i, status := range statuses {
					set(rooms, counts[i], mode, string(status))
				}
				inMode := 0
				for i, n := range counts[len(statuses):] {
					inMode += (i + 1) * n
				}
				set(players, inMode, mode)
			}
		},
	}
}
