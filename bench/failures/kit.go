package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/internal/leader"
	"switchboard/internal/redispipe"
	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/budget"
	"switchboard/kit/hold"
	"switchboard/kit/index"
	"switchboard/kit/room"
	"switchboard/kit/scene"
)

// addKit adds all parts of the kit to a broker, as the broker's command does. It returns a function
// that runs their leases.
func addKit(o *broker.Options, pipe *redispipe.Pipe) (run func(context.Context) error) {
	rounds, budgets := leader.New(pipe, "ix_r_", zerolog.Nop()), budget.NewRedis(pipe, "")
	list := func(name string) index.Index { return index.NewRedis(pipe, "", name) }
	o.Extensions = append(o.Extensions,
		makeExtension(room.New, room.Options{Index: list("rooms"), Budget: budgets, Rounds: rounds.Add("rooms")}),
		makeExtension(hold.New, hold.Options{Index: list("holds"), Rounds: rounds.Add("holds")}),
		makeExtension(board.NewBoards, board.Options{
			Store: board.NewRedis(pipe, ""), Index: list("boards"), Budget: budgets, Rounds: rounds.Add("boards"),
		}),
		makeExtension(account.New, account.Options{
			SigningKey: []byte(strings.Repeat("k", 32)), Index: list("accounts"), Rounds: rounds.Add("accounts"),
		}),
		makeExtension(scene.New, scene.Options{Avatars: list("avatars"), Scenes: list("scenes"), Budget: budgets, Rounds: rounds.Add("scenes")}),
	)
	return rounds.Run
}

// extension returns an element of broker.Options.Extensions.
func makeExtension[S interface{ Extension() extension.Extension }, O any](
	create func(*extension.Host, O) (S, error), o O,
) func(*extension.Host) (extension.Extension, error) {
	return func(host *extension.Host) (extension.Extension, error) {
		s, err := create(host, o)
		if err != nil {
			return extension.Extension{}, fmt.Errorf("kit: %w", err)
		}
		return s.Extension(), nil
	}
}
