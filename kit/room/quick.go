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
	Mode string `json:"mode"`
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
			j, full, err := r.tryJoin(ctx, a, page.Cards[i].ID, q)
			if !full {
				return j, err
			}
		}
		if in.Cursor = page.Next; in.Cursor == "" {
			break
		}
	}
	return r.quickCreate(ctx, a, q)
}

// tryJoin joins a room. full means that another one must be tried.
func (r *Rooms) tryJoin(ctx context.Context, a Actor, id string, q QuickRequest) (j Joined, full bool, err error) {
	j, err = r.Join(ctx, a, JoinRequest{Room: id, Nickname: q.Nickname})
	return j, refused(err, wire.Full, wire.Locked, wire.NotFound, wire.BadCode), err
}

// refused reports whether err is one of the codes.
func refused(err error, codes ...wire.ErrorCode) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// quickCreate makes a new room. Users that come in the same second first try to make, and else to
// join, the same room, so that they do not wait alone, each in a room.
func (r *Rooms) quickCreate(ctx context.Context, a Actor, q QuickRequest) (Joined, error) {
	create := CreateRequest{
		Mode: q.Mode, Region: q.Region, Nickname: q.Nickname, Name: q.Name, AppVersion: q.AppVersion, Data: q.Data,
		ID: q.Mode + ":quick-" + q.Region + strconv.FormatInt(r.host.Now().Unix(), 36),
	}
	view, err := r.Create(ctx, a, create)
	if refused(err, wire.Conflict) {
		j, full, joinErr := r.tryJoin(ctx, a, create.ID, q)
		if !full {
			return j, joinErr
		}
		create.ID = ""
		view, err = r.Create(ctx, a, create)
	}
	if err != nil {
		return Joined{}, err
	}
	return Joined{Room: view.ID, Channel: view.Channel, N: view.N}, nil
}
