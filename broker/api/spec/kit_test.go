package spec_test

import (
	"switchboard/broker/extension"
	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
	"switchboard/kit/scene"
)

// extension returns an element of broker.Options.Extensions.
func makeExtension[S interface{ Extension() extension.Extension }, O any](
	create func(*extension.Host, O) (S, error), o O,
) func(*extension.Host) (extension.Extension, error) {
	return func(host *extension.Host) (extension.Extension, error) {
		s, err := create(host, o)
		if err != nil {
			return extension.Extension{}, err
		}
		return s.Extension(), nil
	}
}

// attempts is the most logins and registrations from an address, a minute or an hour. The scenario
// makes fewer.
const attempts = 60

// kit returns all extensions of the kit.
func kit(s kittest.Store) []func(*extension.Host) (extension.Extension, error) {
	boards := board.Store(board.NewMemory())
	if s.Pipe != nil {
		boards = board.NewRedis(s.Pipe, s.Prefix)
	}
	return []func(*extension.Host) (extension.Extension, error){
		makeExtension(room.New, room.Options{Modes: map[string]room.Mode{"duel": {Capacity: 2}}, Index: s.Index("rooms"), Budget: s.Budgets()}),
		makeExtension(hold.New, hold.Options{Index: s.Index("holds"), Methods: hold.Methods}),
		makeExtension(board.NewBoards, board.Options{Store: boards, Budget: s.Budgets(), Boards: map[string]board.Board{
			"chess": {}, "weekly": {Season: "0 0 * * 1"}, "open": {Submit: true}, "level-*": {Submit: true},
		}}),
		makeExtension(account.New, account.Options{
			SigningKey: tokenSecret, Index: s.Index("accounts"), Guests: true, Iterations: 4096, NameRate: attempts, AddressRate: attempts, RegisterRate: attempts, CallRate: 2 * attempts,
		}),
		makeExtension(account.NewSessions, account.SessionOptions{}),
		makeExtension(scene.New, scene.Options{Avatars: s.Index("avatars"), Scenes: s.Index("scenes"), Capacity: 1, Budget: s.Budgets()}),
	}
}
