package hold

import (
	"context"
	"slices"

	"switchboard/kit"
	"switchboard/kit/index"
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
