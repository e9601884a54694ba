package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"switchboard/client/room"
)

// Rooms are the rooms of a broker, see docs/rooms.md. The errors of all calls are an [*Error].
type Rooms struct{ *Client }

// Room is a room as a backend sees it.
type Room struct {
	ID        string        `json:"id"`
	Channel   string        `json:"channel"`
	Version   int64         `json:"version"`
	Room      room.Document `json:"room"`
	Owner     int           `json:"owner,omitempty"` // number of the owner, 0 for none
	OwnerUser string        `json:"owner_user,omitempty"`
	Members   []RoomMember  `json:"members"`        // by number, with reservations
	Code      string        `json:"code,omitempty"` // of a private room
}

// RoomMember is a player, or a reserved place.
type RoomMember struct {
	room.Member
	User string `json:"user"`
}

// NewRoom describes a room to create. Only Mode is required.
type NewRoom struct {
	room.CreateOptions
	Owner string `json:"owner,omitempty"` // the user that owns it
}

// RoomPatch is a change of the document of a room. Nil parts stay.
type RoomPatch struct {
	Version    int64            `json:"version,omitempty"` // refuses another version with client.Conflict. Zero means any
	Name       *string          `json:"name,omitempty"`
	Region     *string          `json:"region,omitempty"`
	Locked     *bool            `json:"locked,omitempty"`
	AppVersion *string          `json:"app_version,omitempty"`
	Data       *json.RawMessage `json:"data,omitempty"`
	Owner      *int             `json:"owner,omitempty"` // the number of the new owner
}

// RoomJoin is a user that joins a room. Without Client, a place is reserved for the user.
type RoomJoin struct {
	User     string `json:"user"`
	Client   string `json:"client,omitempty"` // the name of a connected client
	Nickname string `json:"nickname,omitempty"`
	TTLMS    int64  `json:"ttl_ms,omitempty"` // of a reservation
	// Deprecated: TTL is the former name of TTLMS, in seconds.
	TTL int64 `json:"ttl,omitempty"`
}

// RoomQuick is a user that joins any open room of a mode. Without Client, a place is reserved.
type RoomQuick struct {
	room.QuickOptions
	User   string `json:"user"`
	Client string `json:"client,omitempty"` // the name of a connected client
	TTLMS  int64  `json:"ttl_ms,omitempty"` // of a reservation
	// Deprecated: TTL is the former name of TTLMS, in seconds.
	TTL int64 `json:"ttl,omitempty"`
}

// Joined is the result of a join.
type Joined struct {
	Room     string `json:"room"`
	Channel  string `json:"channel"`
	N        int    `json:"n"` // the number of the player
	Already  bool   `json:"already,omitempty"`
	Reserved bool   `json:"reserved,omitempty"`
}

// RoomQuery selects rooms. Zero values select all.
type RoomQuery struct {
	room.ListOptions
	Owner string // a user
}

// RoomCount selects rooms to count: by owner; by region; by region, mode and status, also with
// visibility; or by any of mode, status and visibility. Other combinations are refused.
type RoomCount struct {
	Mode, Status, Region, Visibility string
	Owner                            string // a user
}

func roomPath(id, rest string) string { return "/v1/rooms/" + url.PathEscape(id) + rest }

// Create creates a room. A repeated call with the same ID has the code client.Conflict, and with
// the same Key it returns the same room.
func (r Rooms) Create(ctx context.Context, n NewRoom) (created Room, err error) {
	err = r.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/rooms", Body: n}, &created)
	return created, err
}

// Get returns a room with its members.
func (r Rooms) Get(ctx context.Context, id string) (Room, error) {
	return get[Room](ctx, r.Client, roomPath(id, ""), nil)
}

// Patch changes the document of a room.
func (r Rooms) Patch(ctx context.Context, id string, p RoomPatch) (changed Room, err error) {
	err = r.Call(ctx, Request{Method: http.MethodPatch, Path: roomPath(id, ""), Body: p}, &changed)
	return changed, err
}

// Delete ends a room. A version other than 0 is the one that it must have.
func (r Rooms) Delete(ctx context.Context, id string, version int64) error {
	return r.Call(ctx, Request{Method: http.MethodDelete, Path: roomPath(id, ""), Header: condition(version)}, nil)
}

// Reserve reserves places for all of the users, or for none, and returns their numbers. A ttl of 0
// is that of the mode.
func (r Rooms) Reserve(ctx context.Context, id string, users []string, ttl time.Duration) (map[string]int, error) {
	body := map[string]any{"users": users}
	if ttl > 0 {
		body["ttl_ms"] = ttl.Milliseconds()
	}
	var answer struct {
		Numbers map[string]int `json:"numbers"`
	}
	err := r.Call(ctx, Request{Method: http.MethodPost, Path: roomPath(id, "/reserve"), Body: body}, &answer)
	return answer.Numbers, err
}

// Join lets a user join a room.
func (r Rooms) Join(ctx context.Context, id string, j RoomJoin) (joined Joined, err error) {
	err = r.Call(ctx, Request{Method: http.MethodPost, Path: roomPath(id, "/join"), Body: j}, &joined)
	return joined, err
}

// Quick lets a user join an open public room of a mode, or a new one.
func (r Rooms) Quick(ctx context.Context, q RoomQuick) (joined Joined, err error) {
	err = r.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/rooms/quick", Body: q}, &joined)
	return joined, err
}

// Leave ends the membership of a user.
func (r Rooms) Leave(ctx context.Context, id, user string) error {
	return r.act(ctx, id, "/leave", map[string]string{"user": user})
}

// Kick removes player n. The user may not join again for a minute, unless you join or reserve for
// it.
func (r Rooms) Kick(ctx context.Context, id string, n int) error {
	return r.act(ctx, id, "/kick", map[string]int{"n": n})
}

// KickFor is Kick for another time, up to a day. Zero means that the user may join
// again at once.
func (r Rooms) KickFor(ctx context.Context, id string, n int, d time.Duration) error {
	return r.act(ctx, id, "/kick", map[string]int64{"n": int64(n), "ttl_ms": d.Milliseconds()})
}

// Lock locks a room for new members, or unlocks it.
func (r Rooms) Lock(ctx context.Context, id string, locked bool) error {
	return r.act(ctx, id, "/lock", map[string]bool{"locked": locked})
}

// Start starts the game of a room. Starting it again changes nothing.
func (r Rooms) Start(ctx context.Context, id string) error { return r.act(ctx, id, "/start", nil) }

// Finish ends the game of a room. Finishing it again changes nothing.
func (r Rooms) Finish(ctx context.Context, id string) error { return r.act(ctx, id, "/finish", nil) }

func (r Rooms) act(ctx context.Context, id, action string, body any) error {
	return r.Call(ctx, Request{Method: http.MethodPost, Path: roomPath(id, action), Body: body}, nil)
}

// List returns a page of rooms. It may have fewer rooms than the limit although there is a next
// page.
func (r Rooms) List(ctx context.Context, q RoomQuery) (room.Page, error) {
	v := values("mode", q.Mode, "status", q.Status, "region", q.Region, "visibility", q.Visibility, "owner", q.Owner,
		"free", number(q.Free), "order", q.Order, "from", number(q.From), "to", number(q.To), "cursor", q.Cursor, "limit", number(q.Limit))
	if q.Desc {
		v.Set("desc", "1")
	}
	return get[room.Page](ctx, r.Client, "/v1/rooms", v)
}

// Query returns up to 100 rooms, without those that do not exist.
func (r Rooms) Query(ctx context.Context, ids []string) ([]Room, error) {
	var answer struct {
		Rooms []Room `json:"rooms"`
	}
	body := map[string][]string{"rooms": ids}
	err := r.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/rooms/query", Body: body}, &answer)
	return answer.Rooms, err
}

// Count returns the number of rooms that q selects.
func (r Rooms) Count(ctx context.Context, q RoomCount) (int, error) {
	answer, err := get[struct {
		Count int `json:"count"`
	}](ctx, r.Client, "/v1/room-count",
		values("mode", q.Mode, "status", q.Status, "region", q.Region, "visibility", q.Visibility, "owner", q.Owner))
	return answer.Count, err
}

// Of returns a page of the rooms that a user is in.
func (r Rooms) Of(ctx context.Context, user string, p PageQuery) (room.MinePage, error) {
	return get[room.MinePage](ctx, r.Client, "/v1/users/"+url.PathEscape(user)+"/rooms", p.values())
}
