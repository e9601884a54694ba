package registry

import (
	"bytes"
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
	ChangeResult
	Err error
}

// ChangeResult is how the store took a change. Who follows the roster has missed something
// when Prev is not the version that he knows.
type ChangeResult struct {
	Prev, Version int64       // of the roster, before and now; 0 when nobody is in it
	Since         []time.Time // when each of Join came in, in their order; zero for one that did not count
	Watchers      []string    // servers that follow the channel's presence, sorted
}

// Roster is the members that one server has in a channel, sorted by client.
type Roster struct {
	Version int64 // grows with each change; 0 when nobody is there
	Members []Member
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
