package room

import (
	"context"

	"switchboard/kit"
	"switchboard/kit/index"
)

// Mine is a room that a user is in.
type Mine struct {
	Card
	Channel  string `json:"channel"`
	N        int    `json:"n"` // the number of the user
	Reserved bool   `json:"reserved,omitempty"`
	Away     bool   `json:"away,omitempty"`
}

// MinePage is a page of the rooms of a user, by the time of the join.
type MinePage struct {
	Rooms  []Mine `json:"rooms"`
	Cursor string `json:"cursor,omitempty"` // of the next page, "" for the last one
	Next   string `json:"next,omitempty"`   // the former name of Cursor, with the same value
}

// MineRequest is the data of room.mine.
type MineRequest struct {
	Cursor string `json:"cursor,omitempty"`
	Limit  int    `json:"limit,omitempty"` // see kit.PageLimit. Zero means 100
}

// Mine returns the rooms that a user is in, with reservations. For the backend, user names the
// user. The rooms come from a list, and each one is read, so that a room that the user has left
// is not in the page.
func (r *Rooms) Mine(ctx context.Context, a Actor, user string, q MineRequest) (MinePage, error) {
	if !a.isBackend() {
		user = a.User
	}
	if err := checkUser(user); err != nil {
		return MinePage{}, err
	}
	if err := kit.PageLimit(&q.Limit, a.isBackend()); err != nil {
		return MinePage{}, err
	}
	if err := r.Settle(ctx); err != nil {
		return MinePage{}, err
	}
	in := index.Query{List: userList(user), Cursor: q.Cursor, Limit: q.Limit}
	rooms, next, err := kit.ReadPage(ctx, r.index, in, func(ids []string) ([]*Snapshot, error) { return r.read(ctx, ids...) })
	if err != nil {
		return MinePage{}, err
	}
	page := MinePage{Rooms: []Mine{}, Cursor: next, Next: next}
	for _, s := range rooms {
		if s == nil {
			continue
		}
		if m := s.of(user); m != nil {
			page.Rooms = append(page.Rooms, Mine{s.card(), Channel(s.ID), m.N, m.Reserved, m.Away})
		}
	}
	return page, nil
}
