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
	Info   []byte    // a JSON object from its token or its connect, or nil
	Since  time.Time // when it joined, on the store's clock; ignored in arguments
	// Generation is the fencing token of the client's binding. A change with a lower one is ignored.
	// AliasGeneration means that Client is an alias.
	Generation int64
}

// AliasGeneration is the Generation of a member that stands for all clients of a user on a server,
// under an alias in place of a client id. No client has it: generations are below it.
const AliasGeneration = 1<<53 - 1

// PresenceChange lists members that join and leave. A client is in one of the two lists at most.
type PresenceChange struct {
	Join  []Member
	Leave []Member // only Client and Generation are used
}

// RosterChange is a PresenceChange in one channel.
type RosterChange struct {
	Channel string
	PresenceChange
}

// RosterOutcome is the ChangeResult of a RosterChange, or its error.
type RosterOutcome struct {
	ChangeResult
	Err error
}

// ChangeResult is the result of a PresenceChange. A watcher missed a change if Prev is not the
// version that it knows.
type ChangeResult struct {
	Prev, Version int64       // of the roster, before and after the change; 0 if it is empty
	Since         []time.Time // join times, in the order of Join; zero if the join was ignored
	Watchers      []string    // servers that watch the channel's presence, sorted
}

// Roster is the members that one server has in a channel, sorted by client. It belongs to the
// server, which binds the channel before it writes a roster. Calls for one roster must not overlap.
type Roster struct {
	Version int64 // grows with each change; 0 if the roster is empty
	Members []Member
}

// versionField is the field of ch_p_ with the version. No client has that name: names have no
// space.
const versionField = " version"

// description is the JSON in the value of a member in ch_p_, `<ms>:<generation>:<json>`.
type description struct {
	User string          `json:"user,omitempty"`
	Info json.RawMessage `json:"info,omitempty"`
}

// emptyDescription is the description of a client without user and info.
const emptyDescription = "{}"

func describeMember(m Member) ([]byte, error) {
	if m.User == "" && len(m.Info) == 0 {
		return []byte(emptyDescription), nil
	}
	return json.Marshal(description{m.User, m.Info})
}

// parseMember parses a field of ch_p_. It returns false for a malformed value.
func parseMember(client, value string) (Member, bool) {
	parts := strings.SplitN(value, ":", 3)
	if len(parts) != 3 {
		return Member{}, false
	}
	since, err := strconv.ParseInt(parts[0], 10, 64)
	generation, genErr := strconv.ParseInt(parts[1], 10, 64)
	var d description
	if err != nil || genErr != nil || json.Unmarshal([]byte(parts[2]), &d) != nil {
		return Member{}, false
	}
	return Member{
		Client: client, User: d.User, Info: bytes.Clone(d.Info), Since: time.UnixMilli(since).UTC(), Generation: generation,
	}, true
}

func sortMembers(members []Member) {
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.Client, b.Client) })
}
