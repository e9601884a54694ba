package room

import (
	"context"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
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
