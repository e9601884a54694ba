package registry

import (
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
