package room

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"

	"switchboard/internal/wire"
	"switchboard/kit/index"
)

// QuickRequest is the data of room.quick.
type QuickRequest struct {
	Mode string `json:"mode" required:"true"`
	// Region is the region of the room. Zero means any, and none for a new room.
	Region   string `json:"region,omitempty"`
	Nickname string `json:"nickname,omitempty"`
	// Name, AppVersion and Data are those of a new room.
	Name       string          `json:"name,omitempty"`
	AppVersion string          `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Bounds of a quick join.
const (
	quickRooms = 5 // the oldest open rooms, of which one is chosen by chance
	quickTries = 8 // rooms that may be full before a new one is made
)

// Quick makes the user of a connection a member of an open public room of a mode that has not
// started, or of a new one. It chooses one of the oldest by chance, so that users that come at once
// do not all try the same. The errors are those of Create.
func (r *Rooms) Quick(ctx context.Context, a Actor, q QuickRequest) (Joined, error) {
	if a.isBackend() {
		return Joined{}, wire.Errorf(wire.BadRequest, "the backend joins for a client")
	}
	return r.quick(ctx, q, entrance{
		join: func(id string) (Joined, error) { return r.Join(ctx, a, JoinRequest{Room: id, Nickname: q.Nickname}) },
		create: func(n CreateRequest) (Joined, error) {
			n.Nickname = q.Nickname
			view, err := r.Create(ctx, a, n)
			return Joined{Room: view.ID, Channel: view.Channel, N: view.N}, err
		},
	})
}

// entrance is how the user of a quick join enters a room that exists, and one that it makes.
type entrance struct {
	join   func(id string) (Joined, error)
	create func(CreateRequest) (Joined, error)
}

// quick enters one of the oldest open rooms, or a new one.
func (r *Rooms) quick(ctx context.Context, q QuickRequest, e entrance) (Joined, error) {
	if _, found := r.opts.Modes[q.Mode]; !found {
		return Joined{}, r.unknownMode(q.Mode)
	}
	doc := Room{Name: q.Name, Region: q.Region, AppVersion: q.AppVersion, Data: q.Data}
	if err := doc.check(); err != nil {
		return Joined{}, err
	}
	if err := r.Settle(ctx); err != nil {
		return Joined{}, err
	}
	in := index.Query{List: waitLists + "/" + lobbyName(q.Mode, q.Region), Limit: quickRooms}
	for tries := 0; tries < quickTries; {
		page, err := r.index.List(ctx, in)
		if err != nil {
			return Joined{}, err
		}
		for _, i := range rand.Perm(len(page.Cards)) {
			tries++
			if j, err := e.join(page.Cards[i].ID); !isClosed(err) {
				return j, err
			}
		}
		if in.Cursor = page.Next; in.Cursor == "" {
			break
		}
	}
	return r.quickCreate(q, e)
}

// isClosed reports whether a join failed because of its room, so that another one must be tried.
// Forbidden means that the user was kicked.
func isClosed(err error) bool {
	return refused(err, wire.Full, wire.Locked, wire.NotFound, wire.BadCode, wire.Forbidden)
}

// refused reports whether err is one of the codes.
func refused(err error, codes ...wire.ErrorCode) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// quickCreate makes a new room. Users that come in the same second first try to make, and else to
// join, the same room, so that they do not wait alone, each in a room.
func (r *Rooms) quickCreate(q QuickRequest, e entrance) (Joined, error) {
	create := CreateRequest{
		Mode: q.Mode, Region: q.Region, Name: q.Name, AppVersion: q.AppVersion, Data: q.Data,
		ID: q.Mode + ":quick-" + q.Region + strconv.FormatInt(r.host.Now().Unix(), 36),
	}
	j, err := e.create(create)
	if refused(err, wire.Conflict) {
		j, err = e.join(create.ID)
	}
	if isClosed(err) {
		create.ID = ""
		return e.create(create)
	}
	return j, err
}
