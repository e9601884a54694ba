package registry

import (
	"context"
	"errors"
	"time"
)

// ErrDead is returned when a server was declared dead: its id is never given back.
var ErrDead = errors.New("registry: the server was declared dead")

// ErrTooManyClients is returned when a user has MaxClients clients and none of them is offline, or Options.MaxOnline clients
// that are online.
var ErrTooManyClients = errors.New("registry: too many clients of one user")

// ErrBadCursor is returned for a cursor that no page of channels can have ended with.
var ErrBadCursor = errors.New("registry: not a cursor of the list of channels")

// MaxClients is how many clients of one user are kept.
const MaxClients = 64

// Server is one broker process as it describes itself.
type Server struct {
	ID          string // fresh at every start
	Host        string // host:port where other instances reach it
	Version     string
	StartedAt   time.Time // on the server's own clock, for people to read; kept to the millisecond
	LastActive  time.Time // on the store's clock; written by Join and Beat
	Connections int64
	Users       int64
	Channels    int64
	Watching    int64 // users that its clients follow
}

// Binding is where a client of a user was seen last.
type Binding struct {
	Client     string
	Server     string // empty when the client said goodbye: known, but offline
	Generation int64  // of the client's fence; the higher one wins
}

// UserBinding is a client of a user.
type UserBinding struct {
	User string
	Binding
}

// Registry says who is where. Both implementations, [Redis] and [Memory], keep this
// contract; the suite in conformance_test.go runs over both. All calls are safe for
// concurrent use, and concurrent calls share round trips.
type Registry interface {
	Presence

	// Join announces a server: into s_list, and its first beat.
	Join(ctx context.Context, s Server) error
	// Beat renews the lease and the description. It fails with ErrDead once the server
	// was declared dead, whether or not its lease is still there. A server whose lease ran out
	// and that nobody declared dead comes back to life by its beat, in s_list too.
	Beat(ctx context.Context, s Server) error
	// Leave is the orderly end: lease, s_ch_ and s_c_ of the server go, then it leaves s_list.
	// It has unbound everything before; what it binds later nobody would clean.
	Leave(ctx context.Context, server string) error
	// Servers are the live ones: in s_list, with a lease, sorted by id.
	Servers(ctx context.Context) ([]Server, error)

	// BindChannel says that server has at least one subscriber of channel: s_ch_, then
	// ch_, then ch_list. Repeating it is harmless, and restores whichever of the three was lost. ErrDead
	// when the server was declared dead. Calls for one server and channel must not overlap,
	// those of UnbindChannel included.
	BindChannel(ctx context.Context, server, channel string) error
	// BindChannels is BindChannel for each of them, with the errors in their order.
	BindChannels(ctx context.Context, server string, channels []string) []error
	// UnbindChannel takes it back: ch_, then ch_list when that was the last server (and
	// back into it when another one came meanwhile), then s_ch_.
	UnbindChannel(ctx context.Context, server, channel string) error
	// ChannelServers are the servers in ch_{channel}, live or not, sorted.
	ChannelServers(ctx context.Context, channel string) ([]string, error)
	// Channels are up to about limit names from ch_list that begin with prefix, behind
	// cursor ("" to begin); next is "" at the end, and only there: a page may have no names. A
	// name may come twice, one that is there the whole time comes at least once. ErrBadCursor
	// when the store can tell that cursor is none of its own.
	Channels(ctx context.Context, prefix, cursor string, limit int) (names []string, next string, err error)
	// PruneChannel takes channel out of ch_list when no server holds it; pruned is whether it
	// was there.
	PruneChannel(ctx context.Context, channel string) (pruned bool, err error)

	// HoldClients notes in s_c_ that server holds clients, before anything is bound in their names,
	// so that cleaning finds them. ErrDead when the server was declared dead. After an error some
	// may be noted.
	HoldClients(ctx context.Context, server string, clients []string) error
	// DropClient takes the note of one client back.
	DropClient(ctx context.Context, server, client string) error

	// BindUsers puts each binding into its u_{user} and renews the TTL. It returns the errors in
	// their order. When a higher generation of the client is there it does neither, and that is no
	// error. At MaxClients the offline entry with the lowest generation makes room; with none
	// offline it is ErrTooManyClients, and with Options.MaxOnline others online.
	BindUsers(ctx context.Context, list []UserBinding) []error
	// ReleaseUser marks the client offline in u_{user} if the entry is still of this
	// generation (compare-and-delete of the server's name: the client stays known).
	ReleaseUser(ctx context.Context, user, client string, generation int64) error
	// ForgetUser removes the client from u_{user} unless a higher generation is there.
	ForgetUser(ctx context.Context, user, client string, generation int64) error
	// User is every known client of the user, sorted by client; empty when there is none.
	User(ctx context.Context, user string) ([]Binding, error)
	// Users is User of each of them, in one round trip to each node of the store.
	Users(ctx context.Context, users []string) ([][]Binding, error)

	// Listed are the ids in s_list, live or not, sorted.
	Listed(ctx context.Context) ([]string, error)
	// Lease says whether the server has one; its description is empty when not.
	Lease(ctx context.Context, server string) (s Server, live bool, err error)
	// Bury declares a server without a lease dead for a day (s_dead_). It is false when
	// the lease is there after all. Burying twice is harmless.
	Bury(ctx context.Context, server string) (buried bool, err error)
	// Buried says whether the server was declared dead.
	Buried(ctx context.Context, server string) (bool, error)
	// HeldChannels and HeldClients are up to n names of s_ch_ and s_c_, and none only when
	// nothing is left: unbind or drop them and ask again.
	HeldChannels(ctx context.Context, server string, n int) ([]string, error)
	HeldClients(ctx context.Context, server string, n int) ([]string, error)
	// Forget removes what is left of a server: s_ch_, s_c_, lease and s_list, in this order. The tombstone stays.
	Forget(ctx context.Context, server string) error
}
