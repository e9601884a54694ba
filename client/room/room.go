package room

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"switchboard/client"
)

// Room is a room that this client follows. Its fields are those of the client's copy of the
// channel, which the broker keeps up to date.
type Room struct {
	ID      string
	Channel string
	N       int    // the number of this user
	Code    string // of a private room that was created by Rooms.Create

	client *client.Client
}

// Document returns the document of the room. ok is false until it has arrived, and after the room
// has ended.
func (r *Room) Document() (d Document, ok bool) {
	f, ok := r.client.Field(r.Channel, "$room")
	if !ok || json.Unmarshal(f.Value, &d) != nil {
		return Document{}, false
	}
	return d, true
}

// Members returns the members and the reserved places, by number.
func (r *Room) Members() []Member {
	snapshot, _ := r.client.Fields(r.Channel)
	var list []Member
	for name, f := range snapshot.Fields {
		number, found := strings.CutPrefix(name, "member/")
		if !found {
			continue
		}
		var m Member
		if err := json.Unmarshal(f.Value, &m); err != nil {
			continue
		}
		m.N, _ = strconv.Atoi(number)
		m.Away = f.Away
		if !f.Until.IsZero() {
			m.Until = f.Until.UnixMilli()
		}
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Member) int { return cmp.Compare(a.N, b.N) })
	return list
}

// Field returns a field of the room, such as g/round or p/2/position.
func (r *Room) Field(name string) (client.Field, bool) { return r.client.Field(r.Channel, name) }

// Own returns the name of a field of this player: p/{n}/name.
func (r *Room) Own(name string) string { return fmt.Sprintf("p/%d/%s", r.N, name) }

// Set sets a field of this player. It ends with the membership.
func (r *Room) Set(ctx context.Context, name string, value any) error {
	_, err := r.client.Update(ctx, r.Channel, client.Set(r.Own(name), value))
	return err
}

// Leave ends the membership of the user, on all devices. The error is not_found if the user is not
// a member.
func (r *Room) Leave(ctx context.Context) error { return r.call(ctx, "room.leave", nil, nil) }

// Kick removes a member, or a reserved place. The user may not join again for a minute. Only the
// owner may do it.
func (r *Room) Kick(ctx context.Context, n int) error {
	return r.call(ctx, "room.kick", map[string]any{"n": n}, nil)
}

// KickFor is Kick for another time, of whole seconds up to a day. Zero means that the user may join
// again at once.
func (r *Room) KickFor(ctx context.Context, n int, d time.Duration) error {
	return r.call(ctx, "room.kick", map[string]any{"n": n, "ttl": int64(d / time.Second)}, nil)
}

// Lock locks the room for new members, or unlocks it. Only the owner may do it.
func (r *Room) Lock(ctx context.Context, locked bool) error {
	return r.call(ctx, "room.lock", map[string]any{"locked": locked}, nil)
}

// Start begins the game. Only the owner may do it.
func (r *Room) Start(ctx context.Context) error { return r.call(ctx, "room.start", nil, nil) }

// Finish ends the game. Only the owner may do it.
func (r *Room) Finish(ctx context.Context) error { return r.call(ctx, "room.finish", nil, nil) }

// Patch changes the document of the room, and returns the room.
func (r *Room) Patch(ctx context.Context, p Patch) (info Info, err error) {
	request := struct {
		Room string `json:"room"`
		Patch
	}{r.ID, p}
	err = r.client.Call(ctx, "room.patch", request, &info)
	return info, err
}

// call calls a method for this room.
func (r *Room) call(ctx context.Context, method string, data map[string]any, into any) error {
	request := map[string]any{"room": r.ID}
	for name, value := range data {
		request[name] = value
	}
	return r.client.Call(ctx, method, request, into)
}
