package room

import (
	"context"
	"encoding/json"

	"switchboard/client"
)

// Rooms calls the methods of rooms.
type Rooms struct {
	client *client.Client
}

// New returns the rooms of a broker. The client must belong to a user.
func New(c *client.Client) *Rooms { return &Rooms{c} }

// CreateOptions describe a new room. Only Mode is required.
type CreateOptions struct {
	ID         string          `json:"id,omitempty"`  // Zero means a new one
	Key        string          `json:"key,omitempty"` // makes a repeated call return the same room
	Mode       string          `json:"mode"`
	Name       string          `json:"name,omitempty"`
	Visibility string          `json:"visibility,omitempty"` // "public" or "private". Zero means public
	Region     string          `json:"region,omitempty"`
	Capacity   int             `json:"capacity,omitempty"` // Zero means that of the mode
	AppVersion string          `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Nickname   string          `json:"nickname,omitempty"` // of this user
}

// JoinOptions are options of Join.
type JoinOptions struct {
	Nickname string
	Code     string // of a private room
}

// Create makes a room whose owner and first member is the user, and follows it. An ID that exists
// is a conflict.
func (r *Rooms) Create(ctx context.Context, o CreateOptions) (*Room, error) {
	var info Info
	if o.ID != "" {
		if err := r.callAndFollow(ctx, "room.create", o, &info, o.ID); err != nil {
			return nil, err
		}
	} else if err := r.client.Call(ctx, "room.create", o, &info); err != nil {
		return nil, err
	}
	return r.follow(ctx, &Room{ID: info.ID, Channel: info.Channel, N: info.N, Code: info.Code})
}

// Join makes the user a member of a room, and follows it. A user that is a member keeps the number,
// on each device. The codes of refusals are not_found, locked, bad_code and full; the data of a
// full room has `members`, `reserved` and `capacity`.
func (r *Rooms) Join(ctx context.Context, id string, o JoinOptions) (*Room, error) {
	var joined struct {
		Channel string `json:"channel"`
		N       int    `json:"n"`
	}
	request := map[string]string{"room": id, "nickname": o.Nickname, "code": o.Code}
	if err := r.callAndFollow(ctx, "room.join", request, &joined, id); err != nil {
		return nil, err
	}
	return r.follow(ctx, &Room{ID: id, Channel: joined.Channel, N: joined.N})
}

// callAndFollow calls a method that makes the user a member of a room, and subscribes to its fields
// in the same round trip.
func (r *Rooms) callAndFollow(ctx context.Context, method string, data, into any, id string) error {
	return r.client.CallAndSubscribe(ctx, method, data, into, "room:"+id, client.SubscribeOptions{State: true})
}

// follow subscribes to the fields of a room, if the client has not.
func (r *Rooms) follow(ctx context.Context, room *Room) (*Room, error) {
	room.client = r.client
	if _, err := r.client.Subscribe(ctx, room.Channel, client.SubscribeOptions{State: true}); err != nil {
		return nil, err
	}
	return room, nil
}

// Get returns a room that is public, or of which the user is a member.
func (r *Rooms) Get(ctx context.Context, id string) (Info, error) {
	var info Info
	err := r.client.Call(ctx, "room.get", map[string]string{"room": id}, &info)
	return info, err
}

// Info is a room as the broker returns it.
type Info struct {
	ID      string   `json:"id"`
	Channel string   `json:"channel"`
	Version int64    `json:"version"` // for Patch
	Room    Document `json:"room"`
	Owner   int      `json:"owner"` // number of the owner, 0 for none
	Members []Member `json:"members"`
	N       int      `json:"n"`    // number of this user, 0 if it is not a member
	Code    string   `json:"code"` // of a private room, for the owner
}

// Document describes a room. Times are Unix milliseconds, 0 for never.
type Document struct {
	Name       string          `json:"name"`
	Mode       string          `json:"mode"`
	Visibility string          `json:"visibility"` // "public" or "private"
	Status     string          `json:"status"`     // "waiting", "playing" or "finished"
	Region     string          `json:"region"`
	Locked     bool            `json:"locked"`
	Capacity   int             `json:"capacity"`
	Created    int64           `json:"created"`
	Started    int64           `json:"started"`
	Finished   int64           `json:"finished"`
	AppVersion string          `json:"app_version"`
	Data       json.RawMessage `json:"data"`
}

// Member is a player, or a reserved place.
type Member struct {
	N        int    `json:"n"`
	Nickname string `json:"nickname"`
	Joined   int64  `json:"joined"` // Unix ms
	Reserved bool   `json:"reserved"`
	Away     bool   `json:"away"`  // the player has no connection
	Until    int64  `json:"until"` // when the place ends, Unix ms; 0 if it does not
}
