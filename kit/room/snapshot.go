package room

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// The names of fields.
const (
	fieldRoom     = "$room"
	fieldOwner    = "$$owner"
	fieldCreator  = "$$creator"
	fieldCode     = "$$code"
	fieldNext     = "$$next"
	fieldTaken    = "$$taken"
	groupMember   = "member/"
	groupUser     = "$$user/"
	groupReserved = "$$reserved/"
	groupNumber   = "$$n/"
	groupKicked   = "$$kicked/"
	groupBarred   = "$$barred/"
	groupPlayer   = "p/"
	groupShared   = "g/"
)

// channelPrefix is the prefix of the channels of rooms.
const channelPrefix = "room:"

// Channel returns the channel of a room.
func Channel(id string) string { return channelPrefix + id }

// Snapshot is a room with its members.
type Snapshot struct {
	ID string
	// Version is the id of the change that set the document.
	Version int64
	// At is the id of the channel up to which the snapshot includes all changes. Later changes may
	// be included in part.
	At int64
	// Clock is the store's clock at the read, Unix ms.
	Clock   int64
	Room    Room
	Members []Member // by number, with reservations
	// Owner is the number of the owner, 0 if no user is a member.
	Owner int
	// OwnerUser is the user that is named as the owner, "" for none. Code is the code of a private
	// room. Both are for the backend only.
	OwnerUser, Code string

	creator string           // the user to which the room is charged, "" for none
	kicked  map[int]string   // users by number, for KickedFor
	barred  map[string]int64 // until when users may not join, Unix ms, by the names of the fields
	held    counts           // also of a snapshot without all members

	ownerID, nextID, takenID int64 // ids of $$owner, $$next and $$taken, 0 if absent
}

// Member is a player of a room, or a reservation.
type Member struct {
	N        int
	User     string // for the backend only
	Nickname string
	Joined   int64 // Unix ms; 0 for a reservation
	Reserved bool
	// Away is set while the player has no connection.
	Away bool
	// Until is when the place ends: the end of the reservation or of the grace, Unix ms. 0 means that
	// it does not end.
	Until int64

	id     int64    // of the field
	owners []string // clients, also while they are away
}

// memberValue is the value of member/{n}.
type memberValue struct {
	Nickname string `json:"nickname,omitempty"`
	Joined   int64  `json:"joined,omitempty"` // Unix ms
	Reserved bool   `json:"reserved,omitempty"`
}

// Players returns the members without reservations.
func (s *Snapshot) Players() []Member {
	return slices.DeleteFunc(slices.Clone(s.Members), func(m Member) bool { return m.Reserved })
}

// member returns the member with the number, or nil.
func (s *Snapshot) member(n int) *Member {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.N == n })
	if i < 0 {
		return nil
	}
	return &s.Members[i]
}

// of returns the member of a user, or nil.
func (s *Snapshot) of(user string) *Member {
	i := slices.IndexFunc(s.Members, func(m Member) bool { return m.User == user })
	if i < 0 {
		return nil
	}
	return &s.Members[i]
}

// Read returns a room. It is not found if there is none.
func (r *Rooms) Read(ctx context.Context, id string) (*Snapshot, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	list, err := r.read(ctx, id)
	if err == nil && list[0] == nil {
		err = notFound(id)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// read returns rooms in one round trip, or more if some of them change meanwhile. A room that does
// not exist is nil. A room that changes all the time is a mixture, see Snapshot.At.
func (r *Rooms) read(ctx context.Context, ids ...string) ([]*Snapshot, error) {
	list := make([]*Snapshot, len(ids))
	left := make([]int, len(ids)) // positions of the rooms to read
	for i := range left {
		left[i] = i
	}
	_, err := kit.Retry(ctx, "rooms", func() (struct{}, error) {
		names := make([]string, len(left))
		for i, at := range left {
			names[i] = ids[at]
		}
		pages := r.host.ReadStates(ctx, readsOf(names))
		var torn []int
		for i, at := range left {
			var err error
			if list[at], err = newSnapshot(ids[at], pages[2*i], pages[2*i+1]); err != nil {
				return struct{}{}, fmt.Errorf("read room %s: %w", ids[at], err)
			}
			if pages[2*i].Value.ID != pages[2*i+1].Value.ID { // the room has changed between the reads
				torn = append(torn, at)
			}
		}
		if left = torn; len(left) > 0 {
			return struct{}{}, kit.ErrChanged
		}
		return struct{}{}, nil
	})
	if errors.Is(err, kit.ErrContended) {
		err = nil // the mixtures
	}
	return list, err
}

// readsOf returns the two reads of each room.
func readsOf(ids []string) []queue.StateRead {
	reads := make([]queue.StateRead, 0, 2*len(ids))
	for _, id := range ids {
		reads = append(reads,
			queue.StateRead{Channel: Channel(id), Prefix: "$"},
			queue.StateRead{Channel: Channel(id), Prefix: groupMember})
	}
	return reads
}

// newSnapshot returns the snapshot of the pages of a room, or nil if there is no room.
func newSnapshot(id string, backend, members queue.Outcome[queue.StatePage]) (*Snapshot, error) {
	if err := cmp.Or(backend.Err, members.Err); err != nil {
		return nil, err
	}
	s := &Snapshot{ID: id, At: min(backend.Value.ID, members.Value.ID), Clock: backend.Value.Clock}
	for _, f := range members.Value.Fields {
		if err := s.addMember(f); err != nil {
			return nil, err
		}
	}
	for _, f := range backend.Value.Fields {
		if err := s.setField(f); err != nil {
			return nil, fmt.Errorf("field %s: %w", f.Name, err)
		}
	}
	if s.Version == 0 {
		return nil, nil
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return a.N - b.N })
	s.Owner, s.held = s.findOwner(), s.counts()
	return s, nil
}

// setField reads a field of the backend.
func (s *Snapshot) setField(f queue.NamedField) (err error) {
	switch f.Name {
	case fieldRoom:
		s.Version, err = f.ID, json.Unmarshal(f.Value, &s.Room)
	case fieldOwner:
		s.ownerID, err = f.ID, json.Unmarshal(f.Value, &s.OwnerUser)
	case fieldCreator:
		err = json.Unmarshal(f.Value, &s.creator)
	case fieldCode:
		err = json.Unmarshal(f.Value, &s.Code)
	case fieldNext:
		s.nextID = f.ID
	case fieldTaken:
		s.takenID = f.ID
	default:
		if strings.HasPrefix(f.Name, groupBarred) {
			if s.barred == nil {
				s.barred = map[string]int64{}
			}
			s.barred[f.Name] = f.Until()
		}
		if number, found := strings.CutPrefix(f.Name, groupNumber); found {
			n, _ := strconv.Atoi(number)
			if m := s.member(n); m != nil {
				err = json.Unmarshal(f.Value, &m.User)
			}
		}
		if number, found := strings.CutPrefix(f.Name, groupKicked); found {
			err = s.setKicked(number, f.Value)
		}
	}
	return err
}

// setKicked reads a field $$kicked/{n}.
func (s *Snapshot) setKicked(number string, value []byte) error {
	n, err := strconv.Atoi(number)
	var user string
	if err == nil {
		err = json.Unmarshal(value, &user)
	}
	if s.kicked == nil {
		s.kicked = map[int]string{}
	}
	s.kicked[n] = user
	return err
}

// addMember adds the member of a field, or replaces the one with the same number.
func (s *Snapshot) addMember(f queue.NamedField) error {
	n, err := strconv.Atoi(strings.TrimPrefix(f.Name, groupMember))
	var v memberValue
	if err == nil {
		err = json.Unmarshal(f.Value, &v)
	}
	if err != nil {
		return fmt.Errorf("field %s: %w", f.Name, err)
	}
	m := Member{N: n, Nickname: v.Nickname, Joined: v.Joined, Reserved: v.Reserved, Away: f.Away != 0, id: f.ID, owners: f.Owners}
	if until := f.Until(); until != state.AwayStays {
		m.Until = until
	}
	if old := s.member(n); old != nil {
		*old = m
	} else {
		s.Members = append(s.Members, m)
	}
	return nil
}

// findOwner returns the number of the owner: the named one while that user is a player, else the
// player with the lowest number.
func (s *Snapshot) findOwner() int {
	if s.OwnerUser != "" {
		if m := s.of(s.OwnerUser); m != nil && !m.Reserved {
			return m.N
		}
	}
	for _, m := range s.Members {
		if !m.Reserved {
			return m.N
		}
	}
	return 0
}

func notFound(id string) error { return wire.Errorf(wire.NotFound, "room %s: there is none", id) }
