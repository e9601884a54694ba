package hold

import (
	"context"
	"net/http"
	"slices"

	"switchboard/broker/api"
	"switchboard/kit"
	"switchboard/kit/index"
)

// Page is a part of the list of all resources.
type Page struct {
	Resources []*Status `json:"resources"`
	Cursor    string    `json:"cursor,omitempty"` // of the next page; "" if there is none
}

// List returns resources in the order of their names, at most limit of them, see kit.PageLimit.
// cursor is that of the previous page, or "". A new resource is in the list within about a second.
// Its numbers are as of now.
func (h *Holds) List(ctx context.Context, cursor string, limit int) (*Page, error) {
	if err := kit.PageLimit(&limit, true); err != nil {
		return nil, err
	}
	cards, err := h.opts.Index.List(ctx, index.Query{List: allList, Cursor: cursor, Limit: limit})
	if err != nil {
		return nil, err
	}
	names := make([]string, len(cards.Cards))
	for i, c := range cards.Cards {
		names[i] = c.ID
	}
	page := &Page{Resources: []*Status{}, Cursor: cards.Next}
	for part := range slices.Chunk(names, MaxResources) {
		list, err := h.Statuses(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			if s != nil { // else it was removed lately
				page.Resources = append(page.Resources, s)
			}
		}
	}
	return page, nil
}

func (h *Holds) listCall(r *http.Request) (any, error) {
	cursor, limit, err := api.Page(r)
	if err != nil {
		return nil, err
	}
	return answer(h.List(r.Context(), cursor, limit))
}
