package board

import (
	"context"

	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

// New returns the extension with the boards: their calls, methods and channels.
func New(host *extension.Host, opts Options) (extension.Extension, error) {
	b, err := NewBoards(host, opts)
	if err != nil {
		return extension.Extension{}, err
	}
	return b.Extension(), nil
}

// Extension returns the calls, methods and channels of the boards.
func (b *Boards) Extension() extension.Extension {
	return extension.Extension{
		Name: "boards", Methods: b.methods(), Calls: b.calls(), Run: b.Run,
		Metrics: append(b.budget.Metrics(), b.results),
		Owned:   b.owned(),
		Channels: []extension.ChannelKind{{
			Rule: namespace.Rule{
				Name: channelPrefix + "*", Subscribe: namespace.Anyone, State: namespace.Anyone, History: namespace.Anyone,
				NoPresence: true, StateKeep: namespace.KeepForever,
			},
			Authorize: b.authorize,
		}},
	}
}

// authorize implements session.Authorizer: the clients that may read a board may subscribe to it.
func (b *Boards) authorize(_ context.Context, _, user, channel string) error {
	return b.mayRead(channel[len(channelPrefix):], user)
}

// mayRead returns an error if clients of a user may not read a board. user is "" for a client
// without one.
func (b *Boards) mayRead(board, user string) error {
	rules, err := b.opts.board(board)
	if err != nil {
		return err
	}
	if rules.read == namespace.Anyone || rules.read == namespace.Users && user != "" {
		return nil
	}
	return wire.Errorf(wire.Forbidden, "board %s: only %s may read it", board, readers[rules.read])
}

var readers = map[namespace.Access]string{namespace.Users: "users", namespace.BackendOnly: "the backend"}
