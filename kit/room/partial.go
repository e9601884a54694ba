package room

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/queue"
)

// The operations of clients read parts of a room: first its document and what the caller is in it,
// which is enough to refuse the caller, and then the members only if the answer has them. So what a
// message of a client makes the store read is in proportion to the answer.

// corePage reads the fields of a room that do not belong to members, and those of a user, which may
// be "". count counts the members, too.
func (r *Rooms) corePage(ctx context.Context, id, user string, count bool) (*queue.StatePage, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	read := queue.StateRead{
		Channel: Channel(id), Fields: []string{fieldRoom, fieldOwner, fieldCreator, fieldCode, fieldNext, fieldTaken},
	}
	if user != "" {
		read.Fields = append(read.Fields, userField(user), reservedField(user), barredField(user))
	}
	if count {
		read.Count = []state.FieldGroup{{Prefix: groupMember}, {Prefix: groupReserved}}
	}
	return kit.ReadState(ctx, r.host, read)
}

// readCore returns a room without an owner, and with one member at most: that of the user, of which
// it has the number and whether the place is reserved. Its cost does not depend on the members.
func (r *Rooms) readCore(ctx context.Context, id, user string, count bool) (*Snapshot, error) {
	page, err := r.corePage(ctx, id, user, count)
	if err != nil {
		return nil, err
	}
	s, err := newSnapshot(id, queue.Outcome[queue.StatePage]{Value: *page}, queue.Outcome[queue.StatePage]{Value: queue.StatePage{ID: page.ID}})
	if err == nil && s == nil {
		err = notFound(id)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range page.Fields {
		if f.Name == userField(user) || f.Name == reservedField(user) {
			n, err := parseNumber(f)
			if err != nil {
				return nil, err
			}
			s.Members = []Member{{N: n, User: user, Reserved: f.Name == reservedField(user)}}
		}
	}
	if count {
		if s.held, err = r.count(ctx, s, page); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// count returns the numbers of members and reservations, of which page has those of the store. The
// field of a reservation's user is due with the place, but the store does not count it as due.
func (r *Rooms) count(ctx context.Context, s *Snapshot, page *queue.StatePage) (counts, error) {
	taken, reserved := page.Counts[0], page.Counts[1]
	if page.Expired == 0 {
		return counts{taken - reserved, reserved, s.Room.Capacity}, nil
	}
	all := *s
	_, err := r.addMembers(ctx, &all, "", true, nil)
	return all.held, err
}

// parseNumber returns the number in $$user/{user} or $$reserved/{user}.
func parseNumber(f queue.NamedField) (n int, err error) {
	var text string
	if err = json.Unmarshal(f.Value, &text); err == nil {
		n, err = strconv.Atoi(text)
	}
	if err != nil {
		err = fmt.Errorf("field %s: %w", f.Name, err)
	}
	return n, err
}

// readMember returns a room without an owner, and with one member at most: that of the user. count
// counts the members, too.
func (r *Rooms) readMember(ctx context.Context, id, user string, count bool) (*Snapshot, error) {
	s, err := r.readCore(ctx, id, user, count)
	if err != nil || len(s.Members) == 0 {
		return s, err
	}
	name := memberField(s.Members[0].N)
	page, err := kit.ReadState(ctx, r.host, queue.StateRead{Channel: Channel(id), Fields: []string{name}})
	if s.Members = nil; err != nil || len(page.Fields) == 0 { // the place has ended
		return s, err
	}
	if err := s.addMember(page.Fields[0]); err != nil {
		return nil, err
	}
	s.Members[0].User = user
	return s, nil
}

// readAs returns a room as an operation of the actor needs it: all of it for the backend. For a
// client, it has all members, but the users only of the client, of the named owner and of the
// numbers, and the ids only of the client and of the numbers. refuse is called before the members
// are read, with the room of readCore.
func (r *Rooms) readAs(ctx context.Context, a Actor, id string, refuse func(*Snapshot) error, numbers ...int) (*Snapshot, error) {
	if a.isBackend() {
		return r.Read(ctx, id)
	}
	var last *Snapshot
	s, err := kit.Retry(ctx, "room "+id, func() (*Snapshot, error) {
		s, err := r.readCore(ctx, id, a.User, false)
		if err == nil {
			err = refuse(s)
		}
		if err != nil {
			return nil, err
		}
		same, err := r.addMembers(ctx, s, a.User, true, numbers)
		if last = s; err == nil && !same {
			err = kit.ErrChanged
		}
		return s, err
	})
	if errors.Is(err, kit.ErrContended) {
		return last, nil // a mixture, see Snapshot.At
	}
	return s, err
}

// addMembers replaces the member of readCore by all members, or by those with the numbers and the
// user. same reports whether the room has not changed between the reads.
func (r *Rooms) addMembers(ctx context.Context, s *Snapshot, user string, all bool, numbers []int) (same bool, err error) {
	var names []string
	if len(s.Members) > 0 {
		names = append(names, memberField(s.Members[0].N), numberField(s.Members[0].N))
	}
	if s.OwnerUser != "" && s.OwnerUser != user {
		names = append(names, userField(s.OwnerUser))
	}
	for _, n := range numbers {
		names = append(names, memberField(n), numberField(n), kickedField(n))
	}
	var reads []queue.StateRead
	if all {
		reads = append(reads, queue.StateRead{Channel: Channel(s.ID), Prefix: groupMember, Brief: true})
	}
	if len(names) > 0 {
		reads = append(reads, queue.StateRead{Channel: Channel(s.ID), Fields: names})
	}
	s.Members, same = nil, true
	var fields []queue.NamedField
	for _, page := range r.host.ReadStates(ctx, reads) {
		if page.Err != nil {
			return false, fmt.Errorf("read room %s: %w", s.ID, page.Err)
		}
		same = same && page.Value.ID == s.At
		fields = append(fields, page.Value.Fields...)
	}
	return same, s.setMembers(fields)
}

// setMembers reads brief fields of all members, and then those of some members in full, with their
// users.
func (s *Snapshot) setMembers(fields []queue.NamedField) error {
	for _, f := range fields {
		var err error
		switch {
		case strings.HasPrefix(f.Name, groupMember):
			err = s.addMember(f)
		case strings.HasPrefix(f.Name, groupUser):
			var n int
			if n, err = parseNumber(f); err == nil && s.member(n) != nil {
				s.member(n).User = s.OwnerUser
			}
		default:
			err = s.setField(f)
		}
		if err != nil {
			return fmt.Errorf("read room %s: field %s: %w", s.ID, f.Name, err)
		}
	}
	slices.SortFunc(s.Members, func(a, b Member) int { return a.N - b.N })
	s.Owner, s.held = s.findOwner(), s.counts()
	return nil
}

// readOwner returns a room for an operation of its owner on the member with a number. For a client,
// it has no other members than this one and the owner, which is the client.
func (r *Rooms) readOwner(ctx context.Context, a Actor, id string, n int) (*Snapshot, error) {
	if a.isBackend() {
		return r.Read(ctx, id)
	}
	s, err := r.readCore(ctx, id, a.User, false)
	if err == nil {
		err = r.refuseOthers(ctx, s, a)
	}
	if err != nil {
		return nil, err
	}
	owner := s.of(a.User).N
	if _, err := r.addMembers(ctx, s, a.User, false, []int{n}); err != nil {
		return nil, err
	}
	if s.Owner = 0; s.member(owner) != nil { // else the place has ended
		s.Owner = owner
	}
	return s, nil
}

// ownerPage is how many bytes of players are read at once to decide whether a player is the owner.
const ownerPage = 1 << 10

// refuseOthers returns an error for a client that is not the owner of the room. s is the room of
// readCore. It reads other members only if the named owner is not a player.
func (r *Rooms) refuseOthers(ctx context.Context, s *Snapshot, a Actor) error {
	if s.OwnerUser == a.User && s.isPlayer(a.User) {
		return nil
	}
	refusal := errNotOwner(s.ID)
	if !s.isPlayer(a.User) {
		return refusal
	}
	n := s.of(a.User).N
	read := queue.StateRead{Channel: Channel(s.ID), Prefix: groupUser, Bytes: ownerPage, Brief: true}
	reads := []queue.StateRead{read}
	if s.OwnerUser != "" {
		reads = append(reads, queue.StateRead{Channel: Channel(s.ID), Fields: []string{userField(s.OwnerUser)}, Brief: true})
	}
	for {
		pages := r.host.ReadStates(ctx, reads)
		for i, page := range pages {
			if page.Err != nil {
				return fmt.Errorf("read room %s: %w", s.ID, page.Err)
			}
			for _, f := range page.Value.Fields {
				other, err := parseNumber(f)
				if err != nil {
					return err
				}
				if other < n || i == 1 {
					return refusal
				}
			}
		}
		if read.Cursor = pages[0].Value.Next; read.Cursor == "" {
			return nil
		}
		reads = []queue.StateRead{read}
	}
}
