package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/budget"
	"switchboard/queue"
)

// fieldEnded holds an Ended from the update that removes a room until the event is stored.
const fieldEnded = "$$ended"

// Reason is why a room has ended.
type Reason string

// The reasons.
const (
	ReasonEmpty    Reason = "empty"    // it had no members for Mode.EmptyLife
	ReasonFinished Reason = "finished" // it had finished for Mode.FinishedLife, or for less without members
	ReasonDeleted  Reason = "deleted"  // the backend deleted it
)

// Ended is the content of the event room_ended.
type Ended struct {
	Room   string `json:"room"`
	Reason Reason `json:"reason"`
	// Final is the room at its end, as the backend sees it.
	Final View `json:"final"`
	// Fields are p/{n}/* and g/* at the end. They are absent if they have more than MaxFinalFields.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
}

// MaxFinalFields is the most bytes of Ended.Fields.
const MaxFinalFields = 256 << 10

// Events receives the events of rooms. A *events.Recorder implements it.
type Events interface {
	// Emit stores an event for the backend. A repeated call with the same subject and key stores the
	// same event, or one with the same id. data is a JSON object.
	Emit(ctx context.Context, kind, subject, key string, data []byte) error
}

// eventRoomEnded is the kind of the event.
const eventRoomEnded = "room_ended"

// addEnded adds to u, which removes a room, that the event about it is sent. all are the fields.
func (r *Rooms) addEnded(u *state.Update, s *Snapshot, why Reason, all []queue.NamedField) {
	if r.opts.Events == nil {
		return
	}
	e := Ended{Room: s.ID, Reason: why, Final: s.view(Backend), Fields: map[string]json.RawMessage{}}
	bytes := 0
	for _, f := range all {
		if strings.HasPrefix(f.Name, groupPlayer) || strings.HasPrefix(f.Name, groupShared) {
			e.Fields[f.Name] = f.Value
			bytes += len(f.Name) + len(f.Value)
		}
	}
	if bytes > MaxFinalFields {
		e.Fields = nil
	}
	u.Ops = append(u.Ops, kit.Set(fieldEnded, e))
	u.If = append(u.If, kit.Same(fieldEnded, 0)) // an earlier event is not lost
}

// sendEnded stores the event in the field $$ended, and then removes the field. The event is stored
// again under the same id if the process ends in between.
func (r *Rooms) sendEnded(ctx context.Context, id string, f queue.NamedField) error {
	if r.opts.Events != nil {
		if err := r.opts.Events.Emit(ctx, eventRoomEnded, Channel(id), strconv.FormatInt(f.ID, 10), f.Value); err != nil {
			return fmt.Errorf("store the end of room %s: %w", id, err)
		}
	}
	u := &state.Update{If: []state.Condition{kit.Same(fieldEnded, f.ID)}, Ops: []state.Op{kit.Delete(fieldEnded)}}
	_, err := kit.HostStore(r.host).Change(ctx, Channel(id), u, false)
	if isStale(err) {
		return nil // another process has removed it
	}
	return err
}

// remove removes a room. keep returns an error for a room that is not to be removed.
func (r *Rooms) remove(ctx context.Context, id string, why Reason, keep func(*Snapshot) error) error {
	s, _, err := r.change(ctx, Backend, id, r.whole(ctx, id), func(s *Snapshot) (*state.Update, error) {
		if err := keep(s); err != nil {
			return nil, err
		}
		return r.planDelete(ctx, s, why)
	})
	if err != nil {
		return err
	}
	r.budget.Return(ctx, s.creator, id)
	closed := wire.Errorf(wire.NotFound, "the room has ended")
	for _, m := range s.Members {
		err = errors.Join(err, r.host.Unsubscribe(ctx, m.User, Channel(id), closed))
	}
	if err != nil {
		return fmt.Errorf("end the subscriptions of room %s: %w", id, err)
	}
	return nil
}

// Delete ends a room, with the memberships and all of its fields, and the subscriptions of the
// members. If version is not 0, the room must have it, else the error is conflict. Only the backend
// deletes rooms.
func (r *Rooms) Delete(ctx context.Context, id string, version int64) error {
	return r.remove(ctx, id, ReasonDeleted, func(s *Snapshot) error {
		if version != 0 && version != s.Version {
			return wire.Errorf(wire.Conflict, "room %s: its version is %d", id, s.Version).With(s.view(Backend))
		}
		return nil
	})
}

// planDelete returns the update that removes a room with the document and the members of the
// snapshot. The counter in the conditions keeps a member that joins meanwhile from being removed
// unseen. Shared fields that a member sets meanwhile stay; the next room with the id removes them.
func (r *Rooms) planDelete(ctx context.Context, s *Snapshot, why Reason) (*state.Update, error) {
	u := Backend.update()
	u.If = []state.Condition{kit.Same(fieldRoom, s.Version), kit.Same(fieldNext, s.nextID)}
	all, err := kit.ReadState(ctx, r.host, queue.StateRead{Channel: Channel(s.ID)})
	if err != nil {
		return nil, err
	}
	for _, f := range all.Fields {
		switch {
		case f.Name == fieldEnded:
			if err := r.sendEnded(ctx, s.ID, f); err != nil {
				return nil, err
			}
		case f.Parent == "":
			u.Ops = append(u.Ops, kit.Delete(f.Name))
		}
	}
	r.addEnded(u, s, why, all.Fields)
	return u, nil
}

// newBudget returns the budget of the rooms that users make. A room is charged to its user until
// it ends, also if the user leaves it.
func (r *Rooms) newBudget() *budget.Budget {
	return budget.New(budget.Options{
		Store: r.opts.Budget, Kind: "rooms", Setting: "kit.rooms.per_user", Most: r.opts.PerUser, Log: r.log,
		Ended: func(ctx context.Context, user string, ids []string) (ended []string, err error) {
			read := queue.StateRead{Fields: []string{fieldCreator}, Brief: true}
			own, err := kit.ReadEach(ctx, r.host, channelPrefix, ids, read, func(_ string, page *queue.StatePage) (bool, error) {
				return len(page.Fields) > 0 && string(page.Fields[0].Value) == string(kit.JSON(user)), nil
			})
			for i := range own {
				if !own[i] {
					ended = append(ended, ids[i])
				}
			}
			return ended, err
		},
	})
}

// isCharged reports whether the rooms that the actor makes are charged to its user.
func (a Actor) isCharged() bool { return !a.isBackend() && !a.free }

// charge charges a room that is about to be made. undo returns it if the room is not made.
func (r *Rooms) charge(ctx context.Context, a Actor, id string) (undo func(), err error) {
	if !a.isCharged() {
		return func() {}, nil
	}
	fresh, err := r.budget.Charge(ctx, a.User, id)
	return func() {
		if fresh {
			r.budget.Return(context.WithoutCancel(ctx), a.User, id)
		}
	}, err
}

// forget makes a user leave its rooms, and ends the rooms that it has made and that have no members
// then. It returns the number of rooms that the user was in or has made.
func (r *Rooms) forget(ctx context.Context, user string) (removed int, err error) {
	if checkUser(user) != nil {
		return 0, nil // such a user cannot be in a room
	}
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
	case !kit.HasCode(err, wire.NotFound):
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
	case err == errKept, kit.HasCode(err, wire.NotFound):
		return had, nil
	}
	return had, err
}

// errKept says that a room stays.
var errKept error = wire.Errorf(wire.Conflict, "the room stays")
