package setup

// The names of the indexes of the kit. They are parts of keys.
const (
	RoomIndex    = "rooms"
	HoldIndex    = "holds"
	BoardIndex   = "boards"
	AccountIndex = "accounts"
	AvatarIndex  = "avatars"
	SceneIndex   = "scenes"
)
