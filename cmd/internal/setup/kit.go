package setup

// The names of the indexes of the kit. They are parts of keys.
const (
	RoomIndex    = "rooms"
	AccountIndex = "accounts"
	AvatarIndex  = "avatars"
	SceneIndex   = "scenes"
)
