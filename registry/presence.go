package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Member is a client in a channel.
type Member struct {
	Client string
	User   string    // empty for none
	Info   []byte    // a JSON object that its token or its connect gave, or nil
	Since  time.Time // when it came in, on the store's clock; what calls are given has none
	// Generation is that of the client's fence: what an older connection of the client says does not count.
	Generation int64
}

// PresenceChange is what has become different among the members that one server has in one channel.
// A client is in one of the two lists at most.
type PresenceChange struct {
	Join  []Member
	Leave []Member // by Client and Generation
}

// RosterChange is a change of the roster of one channel.
type RosterChange struct {
	Channel string
	PresenceChange
}

// RosterOutcome is what became of a RosterChange.
type RosterOutcome struct {
	PresenceChanged
	Err error
}

// PresenceChanged is how the store took a change. Who follows the roster has missed something
// when Prev is not the version that he knows.
type PresenceChanged struct {
	Prev, Version int64       // of the roster, before and now; 0 when nobody is in it
	Since         []time.Time // when each of Join came in, in their order; zero for one that did not count
	Watchers      []string    // servers that follow the channel's presence, sorted
}

// Roster is the members that one server has in a channel, sorted by client.
type Roster struct {
	Version int64 // grows with each change; 0 when nobody is there
	Members []Member
}

// Presence says who is in the channels. A roster belongs to its server, which has bound the channel before it
// writes one, and does not overlap its calls for one channel. UnbindChannel removes what the server had here, so that
// nothing else need be cleaned. Both registries implement it.
type Presence interface {
	// ChangePresence writes changes of server's rosters, one for each channel, and tells the outcomes in their order. A
	// client that is there already keeps its Since, one with a higher Generation stays as it is. The version grows also
	// with a change of nothing, unless nobody is there.
	ChangePresence(ctx context.Context, server string, changes []RosterChange) []RosterOutcome
	// Roster is whom server has in the channel. Who watches before he reads sees every later change.
	Roster(ctx context.Context, server, channel string) (Roster, error)
	// RosterPage is about limit members behind cursor ("" to begin); next is "" at the end, and only there. One
	// that is there the whole time comes at least once. ErrBadCursor when cursor is none of the store's.
	RosterPage(ctx context.Context, server, channel, cursor string, limit int) (members []Member, next string, err error)
	// RosterSizes is how many members each of the servers has in the channel.
	RosterSizes(ctx context.Context, channel string, servers []string) ([]int, error)
	// WatchPresence adds server to those that changes of the channel's presence name, UnwatchPresence
	// takes it out. ErrDead when the server was declared dead.
	WatchPresence(ctx context.Context, server, channel string) error
	UnwatchPresence(ctx context.Context, server, channel string) error
}

// versionField is the field of ch_p_ that is no client: names have no space.
const versionField = " version"

// description is what ch_p_ holds of a member behind its Since and Generation: `<ms>:<generation>:<json>`.
type description struct {
	User string          `json:"user,omitempty"`
	Info json.RawMessage `json:"info,omitempty"`
}

// undescribed is the description of a client without a user and an info.
const undescribed = "{}"

func describeMember(m Member) ([]byte, error) {
	if m.User == "" && len(m.Info) == 0 {
		return []byte(undescribed), nil
	}
	return json.Marshal(description{m.User, m.Info})
}

// parseMember reads a field of ch_p_. It is false for what nobody here has written.
func parseMember(client, value string) (Member, bool) {
	parts := strings.SplitN(value, ":", 3)
	if len(parts) != 3 {
		return Member{}, false
	}
	since, err := strconv.ParseInt(parts[0], 10, 64)
	generation, err2 := strconv.ParseInt(parts[1], 10, 64)
	var d description
	if err != nil || err2 != nil || json.Unmarshal([]byte(parts[2]), &d) != nil {
		return Member{}, false
	}
	return Member{
		Client: client, User: d.User, Info: bytes.Clone(d.Info), Since: time.UnixMilli(since).UTC(), Generation: generation,
	}, true
}

func sortMembers(members []Member) {
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Client, b.Client) })
}
