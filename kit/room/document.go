package room

import "encoding/json"

// Room is the document of a room: the value of the field $room, which is shown to all readers of
// the room. Times are Unix milliseconds, 0 for never.
type Room struct {
	Name       string     `json:"name,omitempty"`
	Mode       string     `json:"mode"`
	Visibility Visibility `json:"visibility"`
	Status     Status     `json:"status"`
	Region     string     `json:"region,omitempty"`
	// Locked refuses new members. Members and reservations may still join with another device.
	Locked bool `json:"locked,omitempty"`
	// Capacity is the most members and reservations, within the Capacity of the mode.
	Capacity   int             `json:"capacity"`
	Created    int64           `json:"created"`
	Started    int64           `json:"started,omitempty"`
	Finished   int64           `json:"finished,omitempty"`
	AppVersion string          `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Visibility says which users may read a room and find it in lists.
type Visibility string

// The visibilities.
const (
	Public  Visibility = "public"  // all users, unless Mode.MembersOnly
	Private Visibility = "private" // members only; joining needs the code
)

// Status is the phase of a room. It only goes forward.
type Status string

// The statuses.
const (
	Waiting  Status = "waiting"
	Playing  Status = "playing"
	Finished Status = "finished"
)
