package scene

import (
	"switchboard/janitor/task"
	"switchboard/kit"
)

// Restore returns the rounds of a janitor that make the brokers compute again the cards of avatars
// and scenes that are not there, or older than the records, see [kit.Restore].
func Restore(o CheckOptions) []task.Round {
	return []task.Round{
		kit.Restore(kit.CheckOptions{Index: o.Avatars, States: o.States}, kit.Restored{Name: "avatars", Prefix: avatarPrefix, Record: avatarField}),
		kit.Restore(kit.CheckOptions{Index: o.Scenes, States: o.States}, kit.Restored{Name: "scenes", Prefix: scenePrefix, Record: sceneField}),
	}
}
