package hold

import (
	"switchboard/janitor/task"
	"switchboard/kit"
)

// Restore returns a round of a janitor that makes the brokers compute again the cards of resources
// without one, see [kit.Restore].
func Restore(o kit.CheckOptions) task.Round {
	return kit.Restore(o, kit.Restored{Name: "holds", Prefix: channelPrefix})
}
