package board

import (
	"cmp"
	"context"

	"switchboard/broker/api"
	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/kit"
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
		// The budget counts boards, not scores.
		Owned: []extension.Owned{{Kind: "boards", Usage: b.budget.Usage, Forget: b.forget}},
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

// The requests of calls and of methods, see [kit.Binder]. A method has no player that is not its
// user, but for reads.
type (
	boardRequest struct { // of all reads
		Board  string `json:"board" required:"true" path:"board"`
		Season string `json:"season" query:"season"`
	}
	topRequest struct {
		boardRequest
		Offset int `json:"offset" query:"offset" range:"0,10000000"` // maxOffset
		kit.Paged
	}
	playerRequest struct { // of a method, the player is by default the user of the client
		boardRequest
		Player string `json:"player" path:"player"`
	}
	aroundRequest struct {
		playerRequest
		Limit int `json:"limit" query:"limit" range:"page"`
	}
	// A submission is the data of the method board.submit. The player is the user of the client, and
	// the mode is that of the board.
	submission struct {
		Board     string `json:"board" required:"true"`
		Score     int64  `json:"score" required:"true"`
		Key       string `json:"key"`
		Operation string `json:"operation"` // the former name of Key
		Season    string `json:"season"`
	}
)

// calls returns the HTTP calls.
func (b *Boards) calls() []api.Call {
	return []api.Call{
		kit.Call("GET /v1/boards", api.ScopeRead, func(ctx context.Context, q kit.Paged) (Page, error) {
			return b.List(ctx, q.Cursor, q.Limit)
		}),
		kit.Call("POST /v1/boards/{board}/scores", api.ScopePush, func(ctx context.Context, q struct {
			Path string `path:"board"`
			Score
		}) (Result, error) {
			if q.Board != "" && q.Board != q.Path {
				return Result{}, wire.Errorf(wire.BadRequest, "board: the path names %.200s", q.Path)
			}
			q.Board = q.Path
			return b.Submit(ctx, q.Score)
		}),
		kit.Call("GET /v1/boards/{board}", api.ScopeRead, func(ctx context.Context, q topRequest) (View, error) {
			offset, err := offsetOf(q.Cursor, q.Offset)
			if err != nil {
				return View{}, err
			}
			return b.Top(ctx, q.Board, q.Season, offset, q.Limit)
		}),
		kit.Call("GET /v1/boards/{board}/players/{player}", api.ScopeRead, func(ctx context.Context, q playerRequest) (Standing, error) {
			return b.Rank(ctx, q.Board, q.Player, q.Season)
		}),
		kit.Call("GET /v1/boards/{board}/players/{player}/around", api.ScopeRead, func(ctx context.Context, q aroundRequest) (View, error) {
			return b.Around(ctx, q.Board, q.Player, q.Season, q.Limit)
		}),
		kit.Call("DELETE /v1/boards/{board}/players/{player}", api.ScopePush, func(ctx context.Context, q playerRequest) (Result, error) {
			return b.Remove(ctx, q.Board, q.Player, q.Season)
		}),
	}
}

// methods returns the methods of clients.
func (b *Boards) methods() map[string]session.Method {
	return map[string]session.Method{
		"board.submit": session.Decoded(b.submitMethod),
		"board.top": session.Decoded(func(ctx context.Context, c session.Caller, q topRequest) (any, error) {
			offset, err := offsetOf(q.Cursor, q.Offset)
			if err == nil {
				err = kit.LimitOr(&q.Limit, defaultEntries, false)
			}
			if err == nil {
				err = b.mayRead(q.Board, c.User)
			}
			if err != nil {
				return nil, err
			}
			return b.Top(ctx, q.Board, q.Season, offset, q.Limit)
		}),
		"board.around": session.Decoded(func(ctx context.Context, c session.Caller, q aroundRequest) (any, error) {
			if err := kit.LimitOr(&q.Limit, defaultNeighbors, false); err != nil {
				return nil, err
			}
			if err := b.mayRead(q.Board, c.User); err != nil {
				return nil, err
			}
			return b.Around(ctx, q.Board, cmp.Or(q.Player, c.User), q.Season, q.Limit)
		}),
		"board.rank": session.Decoded(func(ctx context.Context, c session.Caller, q playerRequest) (any, error) {
			if err := b.mayRead(q.Board, c.User); err != nil {
				return nil, err
			}
			return b.Rank(ctx, q.Board, cmp.Or(q.Player, c.User), q.Season)
		}),
	}
}

func (b *Boards) submitMethod(ctx context.Context, c session.Caller, s submission) (any, error) {
	rules, err := b.opts.board(s.Board)
	if err != nil {
		return nil, err
	}
	if !rules.Submit || c.User == "" {
		return nil, wire.Errorf(wire.Forbidden, "board %s: clients may not submit scores", s.Board)
	}
	if err := b.charge(ctx, rules, s.Board, c.User); err != nil {
		return nil, err
	}
	return b.Submit(ctx, Score{Board: s.Board, Player: c.User, Score: s.Score, Key: s.Key, Operation: s.Operation, Season: s.Season})
}
