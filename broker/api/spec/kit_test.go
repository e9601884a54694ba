package spec_test

import (
	"switchboard/broker"
	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
	"switchboard/kit/scene"
)

// extension returns an element of broker.Options.Extensions.
func extension[S interface{ Extension() broker.Extension }, O any](
	create func(*broker.Host, O) (S, error), o O,
) func(*broker.Host) (broker.Extension, error) {
	return func(host *broker.Host) (broker.Extension, error) {
		s, err := create(host, o)
		if err != nil {
			return broker.Extension{}, err
		}
		return s.Extension(), nil
	}
}

// attempts is the most logins and registrations from an address, a minute or an hour. The scenario
// makes fewer.
const attempts = 60

// kit returns all extensions of the kit.
func kit(s kittest.Store) []func(*broker.Host) (broker.Extension, error) {
	boards := board.Store(board.NewMemory())
	if s.Pipe != nil {
		boards = board.NewRedis(s.Pipe, s.Prefix)
	}
	return []func(*broker.Host) (broker.Extension, error){
		extension(room.New, room.Options{Modes: map[string]room.Mode{"duel": {Capacity: 2}}, Index: s.Index("rooms"), Budget: s.Budgets()}),
		extension(hold.New, hold.Options{Index: s.Index("holds"), Methods: hold.Methods}),
		extension(board.NewBoards, board.Options{Store: boards, Budget: s.Budgets(), Boards: map[string]board.Board{
			"chess": {}, "weekly": {Season: "0 0 * * 1"}, "open": {Submit: true}, "level-*": {Submit: true},
		}}),
		extension(account.New, account.Options{
			SigningKey: tokenSecret, Index: s.Index("accounts"), Guests: true, Iterations: 4096, NameRate: attempts, AddressRate: attempts, RegisterRate: attempts, CallRate: 2 * attempts,
		}),
		extension(account.NewSessions, account.SessionOptions{}),
		extension(scene.New, scene.Options{Avatars: s.Index("avatars"), Scenes: s.Index("scenes"), Capacity: 1, Budget: s.Budgets()}),
	}
}
