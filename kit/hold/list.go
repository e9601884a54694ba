package hold

import (
	"context"
	"slices"

	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Page is a part of the list of all resources.
type Page struct {
	Resources []*Status `json:"resources"`
	Cursor    string    `json:"cursor,omitempty"` // of the next page; "" if there is none
}

// List returns resources in the order of their names, at most limit of them, see kit.PageLimit. A
// page of large ones ends after kit.BackendBytes. cursor is that of the previous page, or "". A new
// resource is in the list within about a second. Its numbers are as of now.
func (h *Holds) List(ctx context.Context, cursor string, limit int) (*Page, error) {
	if err := kit.PageLimit(&limit, true); err != nil {
		return nil, err
	}
	q := index.Query{List: allList, Cursor: cursor, Limit: limit}
	list, next, err := kit.ReadPage(ctx, h.opts.Index, q, func(ctx context.Context, cards []index.Card) (list []*Status, err error) {
		for part := range slices.Chunk(index.IDs(cards), MaxResources) {
			found, err := h.Statuses(ctx, part)
			if err != nil {
				return nil, err
			}
			list = append(list, found...)
		}
		return list, nil
	})
	if err != nil {
		return nil, err
	}
	// A resource without a status was removed lately.
	list = slices.DeleteFunc(list, func(s *Status) bool { return s == nil })
	if list == nil {
		list = []*Status{}
	}
	return &Page{Resources: list, Cursor: next}, nil
}

// HoldPage is a part of the list of the holds of a resource.
type HoldPage struct {
	Holds  []*Hold `json:"holds"`
	Cursor string  `json:"cursor,omitempty"` // of the next page; "" if there is none
}

// HoldQuery selects holds of a resource.
type HoldQuery struct {
	State  State  `query:"state"` // "" selects all
	Cursor string `query:"cursor"`
	Limit  int    `query:"limit" range:"page"` // see kit.PageLimit
}

// ListHolds returns holds and sales of a resource in the order of their ids, with those that ended
// lately. A page has the selected ones among Limit of them, so that it may have fewer. A page of
// large ones ends after kit.BackendBytes.
func (h *Holds) ListHolds(ctx context.Context, resource string, q HoldQuery) (*HoldPage, error) {
	if err := kit.PageLimit(&q.Limit, true); err != nil {
		return nil, err
	}
	read := queue.StateRead{Prefix: recordGroup, Limit: q.Limit, Bytes: kit.BackendBytes}
	switch {
	case !slices.Contains([]State{"", Held, Sold, Released, Expired}, q.State):
		return nil, wire.Errorf(wire.BadRequest, "state: want held, sold, released or expired")
	case q.Cursor != "" && checkID(q.Cursor) != nil:
		return nil, wire.BadCursor()
	case q.Cursor != "":
		read.Cursor = recordField(q.Cursor)
	}
	v, err := h.readExisting(ctx, resource, nil, read)
	if err != nil {
		return nil, err
	}
	page := &HoldPage{Holds: []*Hold{}, Cursor: idOf(v.read.Value.Next)}
	if err := v.parse(&v.read.Value); err != nil {
		return nil, err
	}
	for _, f := range v.read.Value.Fields {
		if shown := v.show(v.records[idOf(f.Name)]); q.State == "" || shown.State == q.State {
			page.Holds = append(page.Holds, shown)
		}
	}
	return page, nil
}
