package room

import (
	"context"

	"switchboard/client"
)

// Rooms calls the methods of rooms.
type Rooms struct {
	client *client.Client
}

// New returns the rooms of a broker. The client must belong to a user.
func New(c *client.Client) *Rooms { return &Rooms{c} }

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
