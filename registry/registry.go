package registry

import (
	"errors"
	"time"
)

// ErrDead is returned for a server that was declared dead. It must join under a new id.
var ErrDead = errors.New("registry: the server was declared dead")

// ErrTooManyClients is returned if a user has MaxClients clients and none of them is offline, or if
// Options.MaxOnline clients of the user are online.
var ErrTooManyClients = errors.New("registry: too many clients of one user")

// ErrRevoked is returned for a client whose token was revoked, see Revoke.
var ErrRevoked = errors.New("registry: the token was revoked")

// ErrBadCursor is returned by Channels and RosterPage for a malformed cursor.
var ErrBadCursor = errors.New("registry: malformed cursor")

// MaxClients is the most clients of one user that are kept.
const MaxClients = 64

// Server is the description of one broker process, which writes it.
type Server struct {
	ID          string // new at every start
	Host        string // host:port where other instances reach it
	Version     string
	StartedAt   time.Time // on the server's own clock, for display; stored in milliseconds
	LastActive  time.Time // on the store's clock; written by Join and Beat
	Connections int64
	Users       int64
	Channels    int64
	Watching    int64 // users whose presence its clients watch, for servers of former versions
	// StatesChanged differs after each NotifyStates for the server. It is 0 if there was none in this
	// lease. Join and Beat do not write it.
	StatesChanged int64
	// Can has the names of the features of the server, with commas between them, which Join and Renew
	// write. Empty for a server of a version without the list that Renew returns.
	Can string
}

// The names in Can.
const (
	canChanges  = "changes"      // it is in the list that Renew returns
	canReadSets = "channel_sets" // it reads ch_list_{N} in a Cluster
)

// features is the Can of all servers of this version.
const features = canChanges + "," + canReadSets

// Changes are what has changed in the list of live servers, and what a beat also reads. The
// servers have no LastActive, Connections, Users, Channels, Watching and StatesChanged.
type Changes struct {
	Number  int64    // of the last change, for the next call
	All     bool     // Changed has all live servers
	Changed []Server // those that have started, or whose description has changed
	Ended   []string // those whose lease has ended; none if All is set
	Listed  int      // the number of ids that Listed returns
	// StatesChanged is the number of this server, see Server.
	StatesChanged int64
}

// changesKeep is how long the list of changes keeps a change. A server that asks later gets all
// servers.
const changesKeep = 10 * time.Minute

// about is the JSON in the list of live servers.
type about struct {
	Host    string `json:"host"`
	Version string `json:"version"`
	Started int64  `json:"started_at"` // Unix ms
	Can     string `json:"can"`
}

func aboutOf(s Server) about {
	return about{Host: s.Host, Version: s.Version, Started: s.StartedAt.UnixMilli(), Can: features}
}

func (a about) server(id string) Server {
	return Server{ID: id, Host: a.Host, Version: a.Version, StartedAt: time.UnixMilli(a.Started).UTC(), Can: a.Can}
}

// Death is a server that has died.
type Death struct {
	Server string
	At     time.Time // on the store's clock, when its bindings were removed
}

const (
	// diedKeep is how long Died returns a server.
	diedKeep = 24 * time.Hour
	// maxDied is the most servers that Died returns.
	maxDied = 1000
)

// Binding is the server of a client.
type Binding struct {
	Client     string
	Server     string // empty if the client is offline
	Generation int64  // fencing token; the higher one wins
}

// UserBinding is the binding of a client that belongs to a user.
type UserBinding struct {
	User string
	Binding
	// Issued is when the client's token was issued, Unix ms; 0 if it is not known.
	Issued int64
	// Subscribed is set by BindUsers if Subscriptions of the client are not empty.
	Subscribed bool
	// Watchers is set by BindUsers to the servers that watch the user, sorted, see WatchUsers. It is
	// nil if nothing was written.
	Watchers []string
}

// UserWatch is the registration of a server that watches a user.
type UserWatch struct {
	User, Server string
	Number       int64 // that WatchUsers has returned
}

// WatchOutcome is the result of WatchUsers for one user.
type WatchOutcome struct {
	// Number grows with each registration of the server for the user.
	Number int64
	// Renewed is whether the server was registered before. If it was not, and the caller believed
	// so, it has perhaps missed changes.
	Renewed bool
	Err     error
}

// Revocation revokes the tokens of a user that were issued before a time.
type Revocation struct {
	User   string
	Client string // whose tokens are revoked; "" for all clients of the user
	Before int64  // Unix ms; 0 for the present, on the store's clock
	// Durable waits until a replica has the revocation. If none confirms in time, the error is
	// ErrNotReplicated, and the Revoked is valid. In memory the error is ErrNoReplicas.
	Durable bool
}

// Revoked is the result of a Revocation.
type Revoked struct {
	Before  int64     // the time in force, which may be that of an earlier revocation, Unix ms
	Until   int64     // when the store forgets it, Unix ms
	Clients []Binding // the online clients of the user that it may concern, sorted by client
}
