package room

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// ListRequest selects rooms, as the data of room.list and the query of the HTTP call. Zero values
// select all rooms.
type ListRequest struct {
	Mode       string     `json:"mode,omitempty" query:"mode"`
	Status     Status     `json:"status,omitempty" query:"status"`
	Region     string     `json:"region,omitempty" query:"region"`
	Visibility Visibility `json:"visibility,omitempty" query:"visibility"`   // clients see public rooms only
	Owner      string     `json:"owner,omitempty" query:"owner"`             // a user; for the backend only
	Free       int        `json:"free,omitempty" query:"free" range:"0,500"` // least number of free places
	// Order is created, started, ended or activity. Rooms that have not started, or not ended,
	// are not in these orders. Zero means created.
	Order string `json:"order,omitempty" query:"order"`
	Desc  bool   `json:"desc,omitempty" query:"desc"` // the latest first
	// From and To bound the time of the order, Unix ms, both included. Zero means no bound.
	From int64 `json:"from,omitempty" query:"from" range:"0,9007199254740991"`
	To   int64 `json:"to,omitempty" query:"to" range:"0,9007199254740991"`
	// Cursor is the Cursor of the previous page with the same query, or "".
	Cursor string `json:"cursor,omitempty" query:"cursor"`
	Limit  int    `json:"limit,omitempty" query:"limit" range:"page"` // most rooms, see kit.PageLimit. Zero means 100
}

// ListPage is a page of rooms. A page with Cursor may have fewer rooms than the limit, or none: a
// page looks at 1,000 rooms at most, and has 256 KiB of cards at most. That of a client looks at
// kit.ClientBytes of cards.
type ListPage struct {
	Rooms  []Card `json:"rooms"`
	Cursor string `json:"cursor,omitempty"` // of the next page, "" for the last one
	Next   string `json:"next,omitempty"`   // the former name of Cursor, with the same value
}

const (
	maxLooked    = 1000      // most cards that one page looks at
	maxListBytes = 256 << 10 // most bytes of the cards of a page, besides the first
)

// List returns a page of rooms. Clients see public rooms. The cards include what was done through
// this process. Those of other processes are up to a second old, or up to a minute if a server has
// died.
func (r *Rooms) List(ctx context.Context, a Actor, q ListRequest) (ListPage, error) {
	if err := q.prepare(a); err != nil {
		return ListPage{}, err
	}
	if err := r.Settle(ctx); err != nil {
		return ListPage{}, err
	}
	list, exact := findList(q.Order, q.attributes())
	page := ListPage{Rooms: []Card{}}
	in := index.Query{List: list, Min: q.From, Max: q.To, Descending: q.Desc, Cursor: q.Cursor}
	for looked, size := 0, 0; looked < maxLooked; {
		if in.Limit = q.Limit - len(page.Rooms); !exact || q.Free > 0 {
			in.Limit = max(in.Limit, maxLooked/5) // most of the cards may not fit
		}
		var bounded bool
		if in.Bytes, bounded = kit.BytesLeft(ctx); bounded && in.Bytes == 0 {
			break
		}
		found, err := r.index.List(ctx, in)
		if err != nil {
			return ListPage{}, err
		}
		for i, c := range found.Cards {
			card, err := parseCard(c)
			if err != nil {
				return ListPage{}, err
			}
			if !q.fits(&card) {
				continue
			}
			size += len(c.Data)
			if page.Rooms = append(page.Rooms, card); len(page.Rooms) == q.Limit || size > maxListBytes {
				if i < len(found.Cards)-1 || found.Next != "" {
					page.Cursor = in.After(c)
					page.Next = page.Cursor
				}
				return page, nil
			}
		}
		looked += len(found.Cards)
		in.Cursor, page.Cursor, page.Next = found.Next, found.Next, found.Next
		if found.Next == "" {
			break
		}
	}
	return page, nil
}

// prepare checks the request and sets its defaults.
func (q *ListRequest) prepare(a Actor) error {
	if !a.isBackend() {
		if q.Owner != "" || q.Visibility == Private {
			return wire.Errorf(wire.Forbidden, "clients list public rooms, and not by owner")
		}
		q.Visibility = Public
	}
	if q.Order == "" {
		q.Order = orderCreated
	}
	if err := kit.PageLimit(&q.Limit, a.isBackend()); err != nil {
		return err
	}
	for _, c := range []struct {
		bad  bool
		text string
	}{
		{q.Free < 0, "free: it must not be below zero"},
		{q.From < 0 || q.To < 0 || q.From > index.MaxScore || q.To > index.MaxScore, "from, to: they are times in Unix ms"},
		{q.Order != orderCreated && q.Order != orderStarted && q.Order != orderEnded && q.Order != orderActivity,
			"order: it is none of created, started, ended and activity"},
		{q.Status != "" && q.Status != Waiting && q.Status != Playing && q.Status != Finished,
			"status: it is none of waiting, playing and finished"},
		{q.Visibility != "" && q.Visibility != Public && q.Visibility != Private, "visibility: it is neither public nor private"},
		{len(q.Mode) > wire.MaxName || len(q.Region) > wire.MaxName || len(q.Owner) > wire.MaxName, "a name is too long"},
	} {
		if c.bad {
			return wire.Errorf(wire.BadRequest, "%s", c.text)
		}
	}
	return nil
}

func (q *ListRequest) attributes() attributes {
	return attributes{string(q.Visibility), q.Mode, string(q.Status), q.Region, q.Owner}
}

// fits reports whether a card of the list fits the query. The list selects by the owner.
func (q *ListRequest) fits(c *Card) bool {
	return (q.Mode == "" || q.Mode == c.Room.Mode) && (q.Status == "" || q.Status == c.Room.Status) &&
		(q.Region == "" || q.Region == c.Room.Region) && (q.Visibility == "" || q.Visibility == c.Room.Visibility) &&
		c.Free() >= q.Free
}

// Count returns the number of rooms with the mode, status, region, visibility and owner of a
// request. They are counted, not stored. Some combinations have no list, for example a region
// without a mode and a status; then the error is bad_request.
func (r *Rooms) Count(ctx context.Context, q ListRequest) (int, error) {
	if err := q.prepare(Backend); err != nil {
		return 0, err
	}
	list, exact := findList(orderCreated, q.attributes())
	if !exact || q.Free > 0 || q.From != 0 || q.To != 0 {
		return 0, wire.Errorf(wire.BadRequest, "rooms are counted by owner, by region, or by region, mode and status; or "+
			"by any of mode, status and visibility, the latter also with region, mode and status")
	}
	if err := r.Settle(ctx); err != nil {
		return 0, err
	}
	counts, err := r.index.Count(ctx, list)
	if err != nil {
		return 0, err
	}
	return counts[0], nil
}

// maxQuery is the most rooms of one Query.
const maxQuery = 100

// Query returns rooms by id, in one round trip, from their channels. Rooms that do not exist are
// not in the answer.
func (r *Rooms) Query(ctx context.Context, ids []string) ([]View, error) {
	if len(ids) == 0 || len(ids) > maxQuery {
		return nil, wire.Errorf(wire.BadRequest, "rooms: between 1 and %d are allowed", maxQuery)
	}
	for _, id := range ids {
		if err := checkID(id); err != nil {
			return nil, err
		}
	}
	list, err := r.read(ctx, ids...)
	if err != nil {
		return nil, err
	}
	views := []View{}
	for _, s := range list {
		if s != nil {
			views = append(views, s.view(Backend))
		}
	}
	return views, nil
}

// listKind is a kind of lists, which select rooms by some of the attributes in some of the
// orders. A room is in one list of each kind and order.
type listKind struct {
	visibility, mode, status, region, owner bool
	orders                                  string
}

// listKinds are the kinds, the most selective first. A query uses the first one whose attributes
// it has, and checks its other attributes on the cards.
var listKinds = []listKind{
	{owner: true, orders: "created activity"},
	{visibility: true, region: true, mode: true, status: true, orders: "created"},
	{region: true, mode: true, status: true, orders: "created"},
	{visibility: true, mode: true, status: true, orders: "created started ended activity"},
	{mode: true, status: true, orders: "created started ended activity"},
	{region: true, orders: "created activity"},
	{visibility: true, mode: true, orders: "created started ended activity"},
	{mode: true, orders: "created started ended activity"},
	{visibility: true, status: true, orders: "created started ended"},
	{status: true, orders: "created started ended"},
	{visibility: true, orders: "created started ended activity"},
	{orders: "created started ended activity"},
}

// name returns the name of the list with the attributes of a, such as
// created/mode=duel/status=waiting. ok is false if the kind does not have the order, or if a does
// not have an attribute.
func (k *listKind) name(order string, a attributes) (list string, ok bool) {
	if !strings.Contains(k.orders, order) {
		return "", false
	}
	list = order
	for _, part := range []struct {
		use         bool
		name, value string
	}{
		{k.visibility, "visibility", a.visibility}, {k.mode, "mode", a.mode}, {k.status, "status", a.status},
		{k.region, "region", a.region}, {k.owner, "owner", a.owner},
	} {
		if !part.use {
			continue
		}
		if part.value == "" {
			return "", false
		}
		list += "/" + part.name + "=" + short(state.Escape(part.value))
	}
	return list, true
}

// exact reports whether the kind uses all attributes of a.
func (k *listKind) exact(a attributes) bool {
	return k.visibility == (a.visibility != "") && k.mode == (a.mode != "") && k.status == (a.status != "") &&
		k.region == (a.region != "") && k.owner == (a.owner != "")
}

// findList returns the most selective list for a query, and whether it selects by all attributes.
func findList(order string, a attributes) (list string, exact bool) {
	for i := range listKinds {
		if list, ok := listKinds[i].name(order, a); ok {
			return list, listKinds[i].exact(a)
		}
	}
	return order, false // not reached: the last kind has every order
}

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
	if err := r.Settle(ctx); err != nil {
		return MinePage{}, err
	}
	in := index.Query{List: userList(user), Cursor: q.Cursor, Limit: q.Limit}
	read := func(ctx context.Context, cards []index.Card) ([]*Mine, error) { return r.placesOf(ctx, user, cards) }
	places, next, err := kit.ReadPage(ctx, r.index, in, a.isBackend(), read, func(m *Mine) bool { return m != nil })
	if err != nil {
		return MinePage{}, err
	}
	page := MinePage{Rooms: make([]Mine, len(places)), Cursor: next, Next: next}
	for i, m := range places {
		page.Rooms[i] = *m
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
