package room

import (
	"cmp"
	"context"
	"fmt"

	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
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
	Cursor string `json:"cursor,omitempty" query:"cursor"`
	Limit  int    `json:"limit,omitempty" query:"limit" range:"page"` // see kit.PageLimit. Zero means 100
}

// Mine returns the rooms that a user is in, with reservations. For the backend, user names the
// user. The cards are those of List. The place of the user is read from each room, so that a room
// that the user has left is not in the page.
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
	places, next, err := kit.ReadPage(ctx, r.index, in, func(ctx context.Context, cards []index.Card) ([]*Mine, error) { return r.placesOf(ctx, user, cards) })
	if err != nil {
		return MinePage{}, err
	}
	page := MinePage{Rooms: []Mine{}, Cursor: next, Next: next}
	for _, m := range places {
		if m != nil {
			page.Rooms = append(page.Rooms, *m)
		}
	}
	return page, nil
}

// placesOf returns the rooms of the cards with the place of a user in each, nil without one.
func (r *Rooms) placesOf(ctx context.Context, user string, cards []index.Card) ([]*Mine, error) {
	reads := make([]queue.StateRead, len(cards))
	for i, c := range cards {
		reads[i] = queue.StateRead{Channel: Channel(c.ID), Fields: []string{userField(user), reservedField(user)}, Brief: true}
	}
	list := make([]*Mine, len(cards))
	var at []int // positions in list of the rooms that the user is in
	var members []queue.StateRead
	for i, page := range r.host.ReadStates(ctx, reads) {
		if page.Err != nil {
			return nil, fmt.Errorf("read room %s: %w", cards[i].ID, page.Err)
		}
		for _, f := range page.Value.Fields {
			n, err := parseNumber(f)
			if err != nil {
				return nil, err
			}
			at = append(at, i)
			members = append(members, queue.StateRead{Channel: reads[i].Channel, Fields: []string{memberField(n)}, Brief: true})
		}
	}
	for k, page := range r.host.ReadStates(ctx, members) {
		c := cards[at[k]]
		if page.Err != nil {
			return nil, fmt.Errorf("read room %s: %w", c.ID, page.Err)
		}
		for _, f := range page.Value.Fields { // none if the place has ended
			var s Snapshot
			card, err := parseCard(c)
			if err := cmp.Or(err, s.addMember(f)); err != nil {
				return nil, err
			}
			m := s.Members[0]
			list[at[k]] = &Mine{card, Channel(c.ID), m.N, m.Reserved, m.Away}
		}
	}
	return list, nil
}
