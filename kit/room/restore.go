package room

import (
	"context"
	"strings"

	"switchboard/janitor/task"
	"switchboard/kit"
)

// Restore returns a round of a janitor that makes the brokers compute again the lobbies, and the
// cards of rooms without one, see [kit.Restore].
func Restore(o kit.CheckOptions) task.Round {
	return kit.Restore(o, kit.Restored{
		Name: "rooms", Prefix: channelPrefix, In: dueAfter,
		Other: func(ctx context.Context, channel string) error {
			lobby, found := strings.CutPrefix(channel, lobbyPrefix)
			if !found {
				return nil
			}
			return o.Index.Schedule(ctx, lobbyRefresh, lobbyTask+lobby)
		},
	})
}
