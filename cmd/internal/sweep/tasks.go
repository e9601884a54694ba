package sweep

import (
	"github.com/rs/zerolog"

	"switchboard/cmd/internal/setup"
	"switchboard/internal/redispipe"
	"switchboard/janitor"
	"switchboard/janitor/task"
	"switchboard/kit"
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
	lists, boards := listStores(q, pipe, prefix), boardStores(q, pipe, prefix)
	all := []task.Check{
		janitor.CheckStates(q, log),
		room.Check(lists(setup.RoomIndex)),
		hold.Check(lists(setup.HoldIndex)),
		board.Check(boards),
		board.CheckList(boards),
		account.Check(lists(setup.AccountIndex)),
	}
	return append(all, scene.Checks(sceneStores(q, pipe, prefix))...)
}

// rounds returns the rounds of packages that the janitor does not know. The kit's own rounds run in
// the brokers, because only they can notify subscribers; these note the rooms,
// resources of holds, boards, accounts, avatars and scenes whose cards a failover has lost.
func rounds(q *queue.Redis, pipe *redispipe.Pipe, prefix string) []task.Round {
	lists := listStores(q, pipe, prefix)
	all := []task.Round{
		room.Restore(lists(setup.RoomIndex)), hold.Restore(lists(setup.HoldIndex)), board.Restore(boardStores(q, pipe, prefix)),
		account.Restore(lists(setup.AccountIndex)),
	}
	return append(all, scene.Restore(sceneStores(q, pipe, prefix))...)
}

// sceneStores returns the stores of avatars and scenes.
func sceneStores(q *queue.Redis, pipe *redispipe.Pipe, prefix string) scene.CheckOptions {
	lists := listStores(q, pipe, prefix)
	return scene.CheckOptions{States: q, Avatars: lists(setup.AvatarIndex).Index, Scenes: lists(setup.SceneIndex).Index}
}

// boardStores returns the stores of boards.
func boardStores(q *queue.Redis, pipe *redispipe.Pipe, prefix string) board.CheckOptions {
	return board.CheckOptions{Store: board.NewRedis(pipe, prefix), States: q, Index: index.NewRedis(pipe, prefix, setup.BoardIndex)}
}

// listStores returns a function that returns the stores of the index with a name.
func listStores(q *queue.Redis, pipe *redispipe.Pipe, prefix string) func(name string) kit.CheckOptions {
	return func(name string) kit.CheckOptions {
		return kit.CheckOptions{Index: index.NewRedis(pipe, prefix, name), States: q}
	}
}
