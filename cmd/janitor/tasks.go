package main

import (
	"github.com/rs/zerolog"

	"switchboard/cmd/internal/setup"
	"switchboard/internal/redispipe"
	"switchboard/janitor"
	"switchboard/janitor/task"
	"switchboard/kit/account"
	"switchboard/kit/board"
	"switchboard/kit/hold"
	"switchboard/kit/index"
	"switchboard/kit/room"
	"switchboard/kit/scene"
	"switchboard/queue"
)

// checks returns what `janitor check` runs. A package whose records can differ adds its checks
// here. Those of the kit find nothing if no broker has ever had the package.
func checks(q *queue.Redis, pipe *redispipe.Pipe, prefix string, log zerolog.Logger) []task.Check {
	all := []task.Check{
		janitor.CheckStates(q, log),
		room.Check(roomOptions(q, pipe, prefix)),
		hold.Check(holdOptions(q, pipe, prefix)),
		board.Check(board.CheckOptions{Store: board.NewRedis(pipe, prefix), States: q}),
		account.Check(account.CheckOptions{Index: index.NewRedis(pipe, prefix, setup.AccountIndex), States: q}),
	}
	return append(all, scene.Checks(q, index.NewRedis(pipe, prefix, setup.SceneIndex))...)
}

// rounds returns the rounds of packages that the janitor does not know. The kit's own rounds run in
// the brokers, because only they can notify subscribers; these note the rooms and the
// resources of holds whose cards a failover has lost.
func rounds(q *queue.Redis, pipe *redispipe.Pipe, prefix string) []task.Round {
	return []task.Round{room.Restore(roomOptions(q, pipe, prefix)), hold.Restore(holdOptions(q, pipe, prefix))}
}

func holdOptions(q *queue.Redis, pipe *redispipe.Pipe, prefix string) hold.CheckOptions {
	return hold.CheckOptions{Index: index.NewRedis(pipe, prefix, setup.HoldIndex), States: q}
}

func roomOptions(q *queue.Redis, pipe *redispipe.Pipe, prefix string) room.CheckOptions {
	return room.CheckOptions{Index: index.NewRedis(pipe, prefix, setup.RoomIndex), States: q}
}
