package room

import (
	"context"

	"switchboard/broker/extension"
	"switchboard/internal/wire"
)

// owned returns the rooms as what users own.
func (r *Rooms) owned() []extension.Owned {
	return []extension.Owned{{Kind: "rooms", Usage: r.budget.Usage, Forget: r.forget}}
}

// forget makes users leave their rooms, and ends the rooms that they have made and that have no
// members then. It returns the number of rooms that a user was in or has made.
func (r *Rooms) forget(ctx context.Context, users []string) (removed int, err error) {
	for _, user := range users {
		if checkUser(user) != nil {
			continue // such a user cannot be in a room
		}
		n, err := r.forgetUser(ctx, user)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, r.budget.Forget(ctx, users...)
}

func (r *Rooms) forgetUser(ctx context.Context, user string) (removed int, err error) {
	made, err := r.budget.Objects(ctx, user)
	if err != nil {
		return 0, err
	}
	rooms := map[string]bool{}
	for _, id := range made {
		rooms[id] = true
	}
	for q := (MineRequest{}); ; {
		page, err := r.Mine(ctx, Backend, user, q)
		if err != nil {
			return 0, err
		}
		for _, m := range page.Rooms {
			rooms[m.ID] = true
		}
		if q.Cursor = page.Cursor; q.Cursor == "" {
			break
		}
	}
	for id := range rooms {
		had, err := r.forgetIn(ctx, id, user)
		if err != nil {
			return removed, err
		}
		if had {
			removed++
		}
	}
	return removed, nil
}

// forgetIn makes a user leave a room, and ends the room if the user has made it and it has no
// members then. had reports whether the user was in the room or has ended it.
func (r *Rooms) forgetIn(ctx context.Context, id, user string) (had bool, err error) {
	switch _, err := r.Leave(ctx, Backend, id, user); {
	case err == nil:
		had = true
	case !refused(err, wire.NotFound):
		return false, err
	}
	err = r.remove(ctx, id, ReasonDeleted, func(s *Snapshot) error {
		if s.creator != user || len(s.Members) > 0 {
			return errKept
		}
		return nil
	})
	switch {
	case err == nil:
		return true, nil
	case err == errKept, refused(err, wire.NotFound):
		return had, nil
	}
	return had, err
}

// errKept says that a room stays.
var errKept error = wire.Errorf(wire.Conflict, "the room stays")
