package account

import (
	"switchboard/janitor/task"
	"switchboard/kit"
)

// Restore returns a round of a janitor that makes the brokers compute again the cards of accounts
// that are not there, or older than the records, see [kit.Restore].
func Restore(o kit.CheckOptions) task.Round {
	return kit.Restore(o, kit.Restored{Name: "accounts", Prefix: accountPrefix, Record: recordField})
}
