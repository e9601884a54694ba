package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/internal/wire"
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
	u.Ops = append(u.Ops, state.Op{Field: fieldEnded, Kind: state.Set, Value: mustJSON(e)})
	u.If = append(u.If, sameField(fieldEnded, 0)) // an earlier event is not lost
}

// sendEnded stores the event in the field $$ended, and then removes the field. The event is stored
// again under the same id if the process ends in between.
func (r *Rooms) sendEnded(ctx context.Context, id string, f queue.NamedField) error {
	if r.opts.Events != nil {
		if err := r.opts.Events.Emit(ctx, eventRoomEnded, Channel(id), strconv.FormatInt(f.ID, 10), f.Value); err != nil {
			return fmt.Errorf("store the end of room %s: %w", id, err)
		}
	}
	u := &state.Update{
		Writer: state.BackendHolder, If: []state.Condition{sameField(fieldEnded, f.ID)},
		Ops: []state.Op{{Field: fieldEnded, Kind: state.Delete}},
	}
	_, err := r.host.Change(ctx, Channel(id), u, extension.ChangeOptions{})
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
	r.uncharge(ctx, id, s.creator)
	closed := wire.Errorf(wire.NotFound, "the room has ended")
	for _, m := range s.Members {
		err = errors.Join(err, r.host.Unsubscribe(ctx, m.User, Channel(id), closed))
	}
	if err != nil {
		return fmt.Errorf("end the subscriptions of room %s: %w", id, err)
	}
	return nil
}
