// Package note names what a server changes in the store. Package broker/notes writes these names
// into the store before the changes.
package note

// Kind says what a Name names.
type Kind byte

// The kinds. They are part of what is stored, so a kind keeps its letter.
const (
	Channel Kind = 'c' // the queue of a channel, and its state
	Client  Kind = 'q' // the queue of a client, and its binding
	Roster  Kind = 'r' // the roster of a channel that the server has written
	User    Kind = 'u' // the bindings of a user
)

// Name is one thing in the store that a command changes. The zero Name stands for none.
type Name struct {
	Kind Kind
	Name string
}
