package account

import (
	"switchboard/janitor/task"
	"switchboard/kit"
)

// Restore returns a round of a janitor that makes the brokers compute again the cards of accounts
// without one, see [kit.Restore].
func Restore(o kit.CheckOptions) task.Round {
	return kit.Restore(o, kit.Restored{Name: "accounts", Prefix: accountPrefix})
}
